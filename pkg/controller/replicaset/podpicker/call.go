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
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/downscalepodpicker"
	"k8s.io/component-helpers/plaintext"
)

// maxHeaderBytes is the maximum size of the header of an answer.
const maxHeaderBytes = 16 << 10

// maxValueBytes is the maximum size of a value from a Secret. Servers seldom take more.
const maxValueBytes = 16 << 10

// attempt asks the picker once. The error never contains the value of a header.
func (c *Client) attempt(ctx context.Context, q *Question) (downscalepodpicker.Response, error) {
	picker := q.Picker.HTTP
	if picker == nil {
		return downscalepodpicker.Response{}, errNoHTTP
	}
	to, err := c.resolver.resolve(ctx, q.Namespace, picker, &q.tried)
	if err != nil {
		return downscalepodpicker.Response{}, err
	}
	headers, secrets, err := c.headers(ctx, q)
	if err != nil {
		return downscalepodpicker.Response{}, err
	}
	transport, err := newTransport(picker, to, c.resolver.addresses.Dial)
	if err != nil {
		return downscalepodpicker.Response{}, err
	}
	defer transport.CloseIdleConnections()
	request, err := newRequest(ctx, q, headers)
	if err != nil {
		return downscalepodpicker.Response{}, err
	}
	return send(transport, request, q.Candidates, secrets)
}

// send sends the request and reads the answer. Nothing of secrets is in the error.
func send(transport http.RoundTripper, request *http.Request, candidates, secrets []string) (downscalepodpicker.Response, error) {
	// Redirects are answers like any other.
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return downscalepodpicker.Response{}, withoutSecrets(withoutURL(err), secrets)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return downscalepodpicker.Response{}, fmt.Errorf("the picker answered with status %d, must be 200, at the path %s", response.StatusCode, request.URL.EscapedPath())
	}
	if encoding := response.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return downscalepodpicker.Response{}, errors.New("the answer has a Content-Encoding, which is not supported")
	}
	answer, err := downscalepodpicker.DecodeResponse(response.Body, candidates)
	return answer, withoutSecrets(err, secrets)
}

// minSecretPart is the length of a part of a secret, in bytes, that an error must not have.
const minSecretPart = 8

// sent finds in an error what a server has sent: it is in quotes, or at the end.
var sent = regexp.MustCompile(`"(?:[^"\\]|\\.)*"?|'[^']*'?|(?:malformed MIME header(?: line| initial line)?:) .*`)

// withoutSecrets returns another error if it repeats a part of the value of a header, as that of a
// server that echoes requests does. Errors become events and log lines, which more users can read than
// Secrets. A shorter value than minSecretPart is found only where the error has what the server has sent:
// elsewhere, it may be a part of any word.
func withoutSecrets(err error, secrets []string) error {
	if network := (*net.OpError)(nil); err == nil || errors.As(err, &network) {
		return err // An error of the network has nothing that the picker sent.
	}
	text := plaintext.Truncate(err.Error(), maxErrorBytes) // The rest is not told.
	fragments := strings.Join(sent.FindAllString(text, -1), "\n")
	for _, secret := range secrets {
		if len(secret) < minSecretPart {
			continue
		}
		for at := 0; at+minSecretPart <= len(text); at++ {
			if strings.Contains(secret, text[at:at+minSecretPart]) {
				return errors.New("the answer is invalid, and repeats the value of a header of the request")
			}
		}
	}
	for _, secret := range secrets {
		quoted := strings.Trim(strconv.Quote(secret), `"`)
		if secret != "" && len(secret) < minSecretPart && (strings.Contains(fragments, secret) || strings.Contains(fragments, quoted)) {
			return errors.New(sent.ReplaceAllString(text, "(left out, as it repeats the value of a header)"))
		}
	}
	return err
}

// withoutURL removes the address of a request from its error, which is said in front of it anyway.
func withoutURL(err error) error {
	var urlError *url.Error
	if errors.As(err, &urlError) {
		return urlError.Err
	}
	return err
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// newTransport returns a transport for one request, which can only reach this address.
func newTransport(picker *v1.HTTPDownscalePodPicker, to target, dial dialFunc) (*http.Transport, error) {
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	transport := &http.Transport{
		Proxy: nil, // Not that of the environment: it would resolve the name again.
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dial(ctx, "tcp", to.AddrPort.String())
		},
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeaderBytes,
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{}, // Only HTTP/1.1.
	}
	if !isHTTPS(picker) {
		return transport, nil
	}
	transport.TLSClientConfig = &tls.Config{ServerName: to.serverName, MinVersion: tls.VersionTLS12}
	if len(picker.CABundle) > 0 {
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(picker.CABundle) {
			return nil, errors.New("caBundle has no certificate")
		}
	}
	return transport, nil
}

// isHTTPS reports whether TLS is used. The API server writes the scheme in capital letters; any other
// spelling must not send a Secret in the clear.
func isHTTPS(picker *v1.HTTPDownscalePodPicker) bool {
	return strings.EqualFold(string(picker.Scheme), string(v1.URISchemeHTTPS))
}

func newRequest(ctx context.Context, q *Question, headers http.Header) (*http.Request, error) {
	body, err := json.Marshal(downscalepodpicker.Request{NumberOfPodsRequested: q.Pods, CandidatePods: q.Candidates})
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	picker := q.Picker.HTTP
	scheme := "http"
	if isHTTPS(picker) {
		scheme = "https"
	}
	host := picker.Host
	if port := picker.Port.IntValue(); port > 0 {
		host = net.JoinHostPort(host, strconv.Itoa(port))
	} else if net.ParseIP(host) != nil {
		host = net.JoinHostPort(host, "0")
	}
	path, err := url.ParseRequestURI("/" + trimSlash(picker.Path))
	if err != nil || strings.Contains(picker.Path, " ") { // In a query, a blank would end the URL.
		return nil, errors.New("the path is invalid")
	}
	path.Scheme, path.Host = scheme, host
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, path.String(), bytes.NewReader(body))
	if err != nil {
		return nil, withoutURL(err)
	}
	request.Header = headers
	request.Header.Set("Content-Type", downscalepodpicker.ContentType)
	request.Header.Set("Accept", downscalepodpicker.ContentType)
	request.Header.Set(downscalepodpicker.HeaderNamespace, q.Namespace)
	request.Header.Set(downscalepodpicker.HeaderReplicaSet, q.Name)
	request.Header.Set(downscalepodpicker.HeaderIdempotencyKey, q.key)
	return request, nil
}

func trimSlash(path string) string {
	if len(path) > 0 && path[0] == '/' {
		return path[1:]
	}
	return path
}

// headers returns the headers that the author of the ReplicaSet wants, and their values, which no error
// may repeat, also if they are not from Secrets. Secrets are read each time and kept nowhere.
func (c *Client) headers(ctx context.Context, q *Question) (headers http.Header, values []string, err error) {
	headers = http.Header{}
	secrets := map[string]*secretValues{}
	for _, header := range q.Picker.HTTP.HTTPHeaders {
		value := header.Value
		if header.ValueFrom != nil && header.ValueFrom.SecretKeyRef != nil {
			ref := header.ValueFrom.SecretKeyRef
			if secrets[ref.Name] == nil {
				values, err := c.readSecret(ctx, q, ref.Name)
				if err != nil {
					return nil, nil, fmt.Errorf("header %s: %w", header.Name, err)
				}
				secrets[ref.Name] = values
			}
			secret, found, err := secrets[ref.Name].get(ref)
			if err != nil {
				return nil, nil, fmt.Errorf("header %s: %w", header.Name, err)
			}
			if !found {
				continue
			}
			value = secret
		}
		if !httpguts.ValidHeaderFieldName(header.Name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, nil, fmt.Errorf("header %s: its name or value has characters that HTTP does not allow, such as a line break", header.Name)
		}
		headers.Add(header.Name, value)
		values = append(values, value)
	}
	return headers, values, nil
}

// getSecret reads a Secret without logging it. At a high verbosity, the typed client logs all bodies,
// also with a context that discards the log if the feature gate ContextualLogging is off. Stream logs
// none.
func (c *Client) getSecret(ctx context.Context, namespace, name string) (*v1.Secret, error) {
	client, isREST := c.client.CoreV1().RESTClient().(*rest.RESTClient)
	if !isREST || client == nil { // That of a test, which has no bodies.
		return c.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	}
	body, err := client.Get().Namespace(namespace).Resource("secrets").Name(name).SetHeader("Accept", runtime.ContentTypeJSON).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	secret := &v1.Secret{}
	if err := runtime.DecodeInto(scheme.Codecs.UniversalDeserializer(), data, secret); err != nil {
		return nil, errors.New("the API server has not sent a Secret") // The error may quote it.
	}
	return secret, nil
}

// secretValues has those values of a Secret that headers need.
type secretValues struct {
	exists bool
	byKey  map[string]string
}

// readSecret reads the values of a Secret that the picker wants. It keeps nothing else: many Secrets
// of a megabyte, of many pickers at a time, would be much.
func (c *Client) readSecret(ctx context.Context, q *Question, name string) (*secretValues, error) {
	secret, err := c.getSecret(ctx, q.Namespace, name)
	if apierrors.IsNotFound(err) {
		return &secretValues{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", name, err)
	}
	values := &secretValues{exists: true, byKey: map[string]string{}}
	for _, header := range q.Picker.HTTP.HTTPHeaders {
		if header.ValueFrom == nil || header.ValueFrom.SecretKeyRef == nil || header.ValueFrom.SecretKeyRef.Name != name {
			continue
		}
		key := header.ValueFrom.SecretKeyRef.Key
		value, found := secret.Data[key]
		if len(value) > maxValueBytes {
			return nil, fmt.Errorf("key %s of Secret %s has more than %d bytes", key, name, maxValueBytes)
		}
		if found {
			values.byKey[key] = string(value)
		}
	}
	return values, nil
}

// get returns the value of a key. It is not found if it is missing and optional.
func (s *secretValues) get(ref *v1.SecretKeySelector) (value string, found bool, err error) {
	value, found = s.byKey[ref.Key]
	switch {
	case found || ref.Optional != nil && *ref.Optional:
		return value, found, nil
	case !s.exists:
		return "", false, fmt.Errorf("Secret %s does not exist", ref.Name)
	}
	return "", false, fmt.Errorf("Secret %s has no key %s", ref.Name, ref.Key)
}
