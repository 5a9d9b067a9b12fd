/*
Copyright The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/downscalepodpicker"
)

// The examples in Python and TypeScript answer as the controller wants it, where their languages are
// installed.
func TestOtherLanguages(t *testing.T) {
	for name, test := range map[string]struct {
		command []string
		// probe fails where the program cannot run.
		probe []string
	}{
		"python":     {[]string{"python3", "python/picker.py"}, []string{"python3", "--version"}},
		"typescript": {[]string{"node", "typescript/picker.ts"}, []string{"node", "--eval", "process.exit(process.features.typescript ? 0 : 1)"}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := exec.Command(test.probe[0], test.probe[1:]...).Run(); err != nil {
				t.Skipf("%s cannot run here: %v", test.command[0], err)
			}
			url := startExample(t, test.command)
			testExample(t, url)
		})
	}
}

func startExample(t *testing.T, command []string) (url string) {
	program := exec.CommandContext(t.Context(), command[0], command[1:]...)
	program.Env = append(os.Environ(), "PORT=0", "TOKEN=t0ken")
	program.Stderr = os.Stderr
	output, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Wait() }) // The context of the test has ended by then.
	line, err := bufio.NewReader(output).ReadString('\n')
	port, found := strings.CutPrefix(strings.TrimSpace(line), "listening on port ")
	if err != nil || !found {
		t.Fatalf("it says %q, %v", line, err)
	}
	return "http://127.0.0.1:" + port
}

func testExample(t *testing.T, url string) {
	send := func(method, path, token, body string) (status int, answer string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", token)
		request.Header.Set(downscalepodpicker.HeaderNamespace, "shop")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		content, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(content)
	}
	const token = "Bearer t0ken"
	for pod, load := range map[string]string{"a": "1", "b": "2", "c": "2", "d": "2"} {
		if status, answer := send(http.MethodPut, "/load/shop/"+pod, token, load); status != http.StatusOK {
			t.Fatalf("a report: %d %s", status, answer)
		}
	}
	candidates := []string{"a", "b", "c", "d", "unknown"}
	const question = `{"number_of_pods_requested": 2, "candidate_pods": ["a", "b", "c", "d", "unknown"], "later": {}}`
	_, answer := send(http.MethodPost, "/", token, question)
	got, err := downscalepodpicker.DecodeResponse(strings.NewReader(answer), candidates)
	if err != nil {
		t.Fatalf("%q: %v", answer, err)
	}
	// The example of the KEP.
	want := downscalepodpicker.Response{ChosenPods: []string{"a"}, TiedPods: []string{"b", "c", "d"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	for name, test := range map[string]struct {
		method, token, body string
		want                int
	}{
		"no token":       {http.MethodPost, "", question, http.StatusUnauthorized},
		"another token":  {http.MethodPost, "Bearer t0kem", question, http.StatusUnauthorized},
		"no JSON":        {http.MethodPost, token, "x", http.StatusBadRequest},
		"null":           {http.MethodPost, token, "null", http.StatusBadRequest},
		"no candidates":  {http.MethodPost, token, `{"number_of_pods_requested": 1, "candidate_pods": []}`, http.StatusBadRequest},
		"a wrong number": {http.MethodPost, token, `{"number_of_pods_requested": 0, "candidate_pods": ["a"]}`, http.StatusBadRequest},
		"a wrong name":   {http.MethodPost, token, `{"number_of_pods_requested": 1, "candidate_pods": [1]}`, http.StatusBadRequest},
		"no load":        {http.MethodPut, token, "", http.StatusBadRequest},
	} {
		if status, answer := send(test.method, "/", test.token, test.body); status != test.want {
			t.Errorf("%s: %d %s, want %d", name, status, answer, test.want)
		}
	}
}
