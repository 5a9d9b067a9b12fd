/*
Copyright 2026 The Kubernetes Authors.

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

package auditlog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const uid = "0f8fad5b-d9cb-469f-a165-70867728950e"

// received returns the log line of a call that was received at a second of the test.
func received(second int, id string) string {
	return fmt.Sprintf(`{"auditID":%q,"stage":"RequestReceived","requestReceivedTimestamp":"2026-01-01T00:00:%02d.500000Z","objectRef":{"name":"pod"}}`, id, second)
}

// answered returns the log line of a call that was answered.
func answered(second int, id string, code int, status string) string {
	return fmt.Sprintf(`{"auditID":%q,"stage":"ResponseComplete","requestReceivedTimestamp":"2026-01-01T00:00:%02d.500000Z","objectRef":{"name":"pod"},`+
		`"requestObject":{"metadata":{"name":"pod"},"deleteOptions":{"preconditions":{"uid":%q}}},`+
		`"responseStatus":{"code":%d},"responseObject":{"status":%q}}`, id, second, uid, code, status)
}

func TestCheckOnce(t *testing.T) {
	tests := []struct {
		name    string
		logs    []string // One for each API server.
		wantErr string   // A part of the error, empty for none.
	}{
		{
			name: "accepted once",
			logs: []string{received(1, "a") + "\n" + answered(1, "a", 201, "Success") + "\n"},
		},
		{
			name: "refused by a budget, then accepted",
			logs: []string{answered(0, "a", 429, "Failure") + "\n" + answered(1, "b", 201, "Success") + "\n"},
		},
		{
			name: "refused with a 201, then accepted",
			logs: []string{answered(0, "a", 201, "Failure") + "\n" + answered(1, "b", 201, "Success") + "\n"},
		},
		{
			name:    "accepted twice",
			logs:    []string{answered(1, "a", 201, "Success") + "\n" + answered(1, "b", 201, "Success") + "\n"},
			wantErr: "was accepted 2 times",
		},
		{
			name:    "accepted by two API servers",
			logs:    []string{answered(1, "a", 201, "Success") + "\n", answered(5, "b", 201, "Success") + "\n"},
			wantErr: "was accepted 2 times",
		},
		{
			name: "interrupted after the eviction",
			logs: []string{received(1, "a") + "\n"},
		},
		{
			name: "its caller was killed after the eviction",
			logs: []string{received(1, "a") + "\n" + answered(1, "a", 504, "Failure") + "\n"},
		},
		{
			name: "interrupted before the eviction, then accepted",
			logs: []string{received(0, "a") + "\n", received(1, "b") + "\n" + answered(1, "b", 201, "Success") + "\n"},
		},
		{
			name:    "interrupted after the eviction, then accepted again",
			logs:    []string{received(1, "a") + "\n", received(4, "b") + "\n" + answered(4, "b", 201, "Success") + "\n"},
			wantErr: "was evicted again",
		},
		{
			name: "half a line at the end",
			logs: []string{answered(1, "a", 201, "Success") + "\n" + `{"auditID":"b","sta`},
		},
		{
			name:    "never evicted",
			logs:    []string{received(1, "a") + "\n" + answered(1, "a", 429, "Failure") + "\n"},
			wantErr: "was never evicted",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			// The last API server was killed before its first event.
			evictions, err := ReadEvictions(append(writeLogs(t, test.logs), filepath.Join(t.TempDir(), "none")))
			if err != nil {
				t.Fatalf("reading the logs: %v", err)
			}
			err = evictions["pod"].CheckOnce(time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC))
			if (err != nil) != (test.wantErr != "") || (err != nil && !strings.Contains(err.Error(), test.wantErr)) {
				t.Errorf("got error %v, want one with %q", err, test.wantErr)
			}
		})
	}
}

func TestReadEvictionsRejects(t *testing.T) {
	accepted := answered(1, "a", 201, "Success") + "\n"
	for name, test := range map[string]struct{ log, wantErr string }{
		"an eviction without UID":    {strings.Replace(accepted, `"preconditions":{"uid":"`+uid+`"}`, "", 1), "no UID"},
		"half a line in the middle":  {"{\n" + accepted, "unexpected end of JSON"},
		"a body that is no eviction": {strings.Replace(accepted, `"metadata":{"name":"pod"}`, `"metadata":1`, 1), "reading the eviction"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadEvictions(writeLogs(t, []string{test.log}))
			if err == nil || !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("got error %v, want one with %q", err, test.wantErr)
			}
		})
	}
}

func writeLogs(t *testing.T, logs []string) []string {
	t.Helper()
	var files []string
	for i, log := range logs {
		file := filepath.Join(t.TempDir(), fmt.Sprintf("audit-%d.log", i))
		if err := os.WriteFile(file, []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}
