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
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// apiClient talks to the API server as the administrator. The few calls that are
// made here do not need client-go, and without it this program builds at once.
type apiClient struct {
	base string
	http *http.Client
}

// statusError is an answer other than success.
type statusError struct {
	code    int
	message string
}

func (e *statusError) Error() string { return e.message }

func hasStatus(err error, code int) bool {
	var status *statusError
	return errors.As(err, &status) && status.code == code
}

func (c *cluster) apiClient(rec record) (*apiClient, error) {
	pki := filepath.Join(c.dir(), "pki")
	ca, err := os.ReadFile(filepath.Join(pki, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("its certificate authority is unreadable: %w", err)
	}
	admin, err := tls.LoadX509KeyPair(filepath.Join(pki, "admin.crt"), filepath.Join(pki, "admin.key"))
	if err != nil {
		return nil, fmt.Errorf("its administrator certificate is unreadable: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &apiClient{
		base: fmt.Sprintf("https://127.0.0.1:%d", rec.Ports.APIServer),
		http: &http.Client{Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{admin}},
			MaxIdleConnsPerHost: nodeWorkers,
		}},
	}, nil
}

// do sends in, if any, and decodes the answer into out, if any.
func (a *apiClient) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode the request for %s: %w", path, err)
		}
		body = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, a.base+path, body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := a.http.Do(request)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("read the answer of %s %s: %w", method, path, err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return &statusError{code: response.StatusCode, message: fmt.Sprintf("%s %s: %s: %s", method, path, response.Status, data)}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("decode the answer of %s %s: %w", method, path, err)
	}
	return nil
}
