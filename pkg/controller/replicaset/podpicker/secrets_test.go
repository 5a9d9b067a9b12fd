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

package podpicker

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
)

// serveSecret serves the API of one Secret, in the encoding that is asked for.
func serveSecret(t *testing.T, value string) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "token"}, Data: map[string][]byte{"value": []byte(value)}}
		contentType := "application/json"
		if strings.Contains(r.Header.Get("Accept"), runtime.ContentTypeProtobuf) {
			contentType = runtime.ContentTypeProtobuf
		}
		info, found := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), contentType)
		if !found {
			t.Errorf("no encoding %s", contentType)
			return
		}
		w.Header().Set("Content-Type", contentType)
		if err := scheme.Codecs.EncoderForVersion(info.Serializer, v1.SchemeGroupVersion).Encode(secret, w); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// secretCase is what becomes of a request with the value of a Secret.
type secretCase struct {
	value string
	serve func(http.HandlerFunc) *httptest.Server
	// answer is what the picker says. It may repeat what it was sent.
	answer http.HandlerFunc
	// wantErr is that of the result.
	wantErr string
}

func secretCases(t *testing.T) map[string]secretCase {
	return map[string]secretCase{
		"answered": {value: "v4lue-one", answer: answering(`{"chosen_pods": ["a"]}`)},
		"repeated": {value: "v4lue-two", answer: func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, r.Header.Get("X-Token"), http.StatusForbidden)
		}, wantErr: "status 403"},
		"redirected": {value: "v4lue-three", answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/?"+r.Header.Get("X-Token"), http.StatusFound)
		}, wantErr: "status 302"},
		"a line break":  {value: "v4lue-four\r\nHost: a", answer: answering(`{}`), wantErr: "characters that HTTP does not allow"},
		"hung up":       {value: "v4lue-five", answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, wantErr: "EOF"},
		"an unknown CA": {value: "v4lue-six", serve: func(h http.HandlerFunc) *httptest.Server { return httptest.NewTLSServer(h) }, answer: answering(`{}`), wantErr: "certificate"},
		"a stranger": {value: "v4lue-eight", answer: func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"chosen_pods": [%q]}`, r.Header.Get("X-Token"))
		}, wantErr: "repeats the value"},
		"a status line": {value: "v4lue-ten", answer: func(w http.ResponseWriter, r *http.Request) { repeat(t, w, r.Header.Get("X-Token")+"\r\n\r\n") }, wantErr: "repeats the value"},
		"a header line": {value: "v4lue-eleven", answer: func(w http.ResponseWriter, r *http.Request) {
			repeat(t, w, "HTTP/1.1 200 OK\r\n"+r.Header.Get("X-Token")+"\r\n\r\n")
		}, wantErr: "repeats the value"},
		"a length": {value: "v4lue-twelve", answer: func(w http.ResponseWriter, r *http.Request) {
			repeat(t, w, "HTTP/1.1 200 OK\r\nContent-Length: "+r.Header.Get("X-Token")+"\r\n\r\n")
		}, wantErr: "repeats the value"},
		"a location": {value: "v4lue-thirteen", answer: func(w http.ResponseWriter, r *http.Request) {
			repeat(t, w, "HTTP/1.1 302 Found\r\nLocation: http://[%"+r.Header.Get("X-Token")+"\r\n\r\n")
		}, wantErr: "repeats the value"},
		"a field": {value: "v4lue-nine", answer: func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"chosen_pods": {%q: 1}}`, r.Header.Get("X-Token"))
		}, wantErr: "as JSON"},
		"a wrong answer": {value: "v4lue-seven", answer: func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "{} %s", r.Header.Get("X-Token")) }, wantErr: "as JSON"},
	}
}

// The value of a Secret is in no log, whatever the verbosity, in no error and in no metric, whatever
// becomes of the request.
func TestSecretsStaySecret(t *testing.T) { testSecretsStaySecret(t) }

// The same without contextual logging, which is a feature gate of all components.
func TestSecretsStaySecretWithoutContextualLogging(t *testing.T) {
	klog.EnableContextualLogging(false)      //nolint:logcheck // This is what is tested.
	defer klog.EnableContextualLogging(true) //nolint:logcheck // As above.
	testSecretsStaySecret(t)
}

func testSecretsStaySecret(t *testing.T) {
	state := klog.CaptureState() //nolint:logcheck // The log of the process is what is tested.
	defer state.Restore()
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	for name, value := range map[string]string{"v": "10", "logtostderr": "false", "alsologtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	klog.SetOutput(&log) //nolint:logcheck // As above.
	var said []string

	for name, test := range secretCases(t) {
		for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
			serve := test.serve
			if serve == nil {
				serve = func(h http.HandlerFunc) *httptest.Server { return httptest.NewServer(h) }
			}
			reached := ""
			server := serve(func(w http.ResponseWriter, r *http.Request) {
				reached = r.Header.Get("X-Token")
				test.answer(w, r)
			})
			server.Config.ErrorLog = nil
			config := serveSecret(t, test.value)
			config.ContentType = contentType
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			a := newAsked(t, 1)
			a.Client.client = client
			q := newQuestion(t, server.URL, 1)
			q.Picker.HTTP.HTTPHeaders = []v1.HTTPDownscalePodPickerHeader{{Name: "X-Token", ValueFrom: &v1.HTTPDownscalePodPickerHeaderSource{SecretKeyRef: secretKey("token", "value", false)}}}
			result := a.result(t, q)
			server.Close()
			if (test.wantErr == "") != (result.Err == nil) || result.Err != nil && !strings.Contains(result.Err.Error(), test.wantErr) {
				t.Errorf("%s: error %v, want %q", name, result.Err, test.wantErr)
			}
			if test.wantErr == "" && reached != test.value {
				t.Errorf("%s: the picker got %q", name, reached)
			}
			said = append(said, fmt.Sprint(result.Err), result.String(), fmt.Sprintf("%+v", result))
		}
	}

	klog.Flush() //nolint:logcheck // As above.
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	said = append(said, log.String(), fmt.Sprint(families))
	all := strings.ToLower(strings.Join(said, "\n"))
	if !strings.Contains(all, "answered") {
		t.Error("there are no metrics")
	}
	for _, form := range []string{"v4lue", base64.StdEncoding.EncodeToString([]byte("v4lue-")), hex.EncodeToString([]byte("v4lue"))} {
		if at := strings.Index(all, strings.ToLower(form)); at >= 0 {
			t.Errorf("there is a value: ...%s...", all[max(0, at-200):min(len(all), at+100)])
		}
	}
}

// repeat answers with exactly this text.
func repeat(t *testing.T, w http.ResponseWriter, text string) {
	connection, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = connection.Write([]byte(text))
	_ = connection.Close()
}

// What the API server says of a Secret that it does not send.
func TestSecretRefused(t *testing.T) {
	for status, want := range map[int]string{http.StatusNotFound: "Secret token does not exist", http.StatusForbidden: "reading Secret token: ", http.StatusOK: "has not sent a Secret"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", runtime.ContentTypeJSON)
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": %d, "reason": %q}`, status, strings.ReplaceAll(http.StatusText(status), " ", ""))
		}))
		client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		a, q := newAsked(t, 1), newQuestion(t, "http://127.0.0.1:1", 1)
		a.Client.client = client
		q.Picker.HTTP.HTTPHeaders = []v1.HTTPDownscalePodPickerHeader{{Name: "X-Token", ValueFrom: &v1.HTTPDownscalePodPickerHeaderSource{SecretKeyRef: secretKey("token", "value", false)}}}
		if result := a.result(t, q); result.Err == nil || !strings.Contains(result.Err.Error(), want) {
			t.Errorf("status %d: %v, want %q", status, result.Err, want)
		}
		server.Close()
	}
}
