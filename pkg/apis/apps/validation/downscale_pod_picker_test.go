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

package validation

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/cert"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/core"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/utils/ptr"
)

func newPicker(changes ...func(*core.DownscalePodPicker)) *core.DownscalePodPicker {
	picker := &core.DownscalePodPicker{
		HTTP:       &core.HTTPDownscalePodPicker{Host: "picker.shop.svc", Port: intstr.FromInt32(8080), Path: "/", Scheme: core.URISchemeHTTP},
		MaxRetries: ptr.To[int32](3), TimeoutSeconds: ptr.To[int32](1),
	}
	for _, change := range changes {
		change(picker)
	}
	return picker
}

func pickerHTTP(change func(*core.HTTPDownscalePodPicker)) *core.DownscalePodPicker {
	return newPicker(func(p *core.DownscalePodPicker) { change(p.HTTP) })
}

func pickerHost(host string) *core.DownscalePodPicker {
	return pickerHTTP(func(h *core.HTTPDownscalePodPicker) { h.Host = host })
}

func pickerPort(port intstr.IntOrString, host string) *core.DownscalePodPicker {
	return pickerHTTP(func(h *core.HTTPDownscalePodPicker) { h.Port, h.Host = port, host })
}

func pickerPath(path string) *core.DownscalePodPicker {
	return pickerHTTP(func(h *core.HTTPDownscalePodPicker) { h.Path = path })
}

func pickerHeader(header core.HTTPDownscalePodPickerHeader) *core.DownscalePodPicker {
	return pickerHTTP(func(h *core.HTTPDownscalePodPicker) { h.HTTPHeaders = []core.HTTPDownscalePodPickerHeader{header} })
}

func fromSecret(name, key string) *core.HTTPDownscalePodPickerHeaderSource {
	return &core.HTTPDownscalePodPickerHeaderSource{SecretKeyRef: &core.SecretKeySelector{LocalObjectReference: core.LocalObjectReference{Name: name}, Key: key}}
}

// pickerSecrets has two headers from each of so many Secrets.
func pickerSecrets(count int) *core.DownscalePodPicker {
	return pickerHTTP(func(h *core.HTTPDownscalePodPicker) {
		for i := range 2 * count {
			h.HTTPHeaders = append(h.HTTPHeaders, core.HTTPDownscalePodPickerHeader{Name: "X-Token", ValueFrom: fromSecret("token-"+strconv.Itoa(i/2), "value")})
		}
	})
}

// What is written as a URL gets one error, which says where the parts belong.
func TestPickerHostIsNoURL(t *testing.T) {
	for _, host := range []string{"picker.shop.svc:80", "http://picker.shop.svc", "picker.shop.svc/pick", "user@picker.shop.svc", "[2001:db8::1]"} {
		errs := validatePickerHost(host, field.NewPath("host"))
		if len(errs) != 1 || !strings.Contains(errs[0].Detail, "scheme, port and path are fields of their own") {
			t.Errorf("%s: %v", host, errs)
		}
	}
}

// Each case has the errors that are wanted, as field: type. Values of headers and certificates are
// never part of an error.
func TestValidateDownscalePodPicker(t *testing.T) {
	caBundle, _, err := cert.GenerateSelfSignedCertKey("picker", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	https := func(bundle []byte) *core.DownscalePodPicker {
		return pickerHTTP(func(h *core.HTTPDownscalePodPicker) { h.Scheme, h.CABundle = core.URISchemeHTTPS, bundle })
	}
	const invalid, required, forbidden = string(field.ErrorTypeInvalid), string(field.ErrorTypeRequired), string(field.ErrorTypeForbidden)
	const tooLong, tooMany, unsupported = string(field.ErrorTypeTooLong), string(field.ErrorTypeTooMany), string(field.ErrorTypeNotSupported)
	for name, test := range map[string]struct {
		picker *core.DownscalePodPicker
		want   []string
	}{
		"none":                    {},
		"a Service":               {picker: newPicker()},
		"a Service of a cluster":  {picker: pickerHost("picker.shop.svc.cluster.local")},
		"a name":                  {picker: pickerHost("picker.example.com")},
		"an IPv4 address":         {picker: pickerHost("192.0.2.1")},
		"an IPv6 address":         {picker: pickerHost("2001:db8::1")},
		"no protocol":             {picker: &core.DownscalePodPicker{}, want: []string{"http: " + required}},
		"no host":                 {picker: pickerHost(""), want: []string{"http.host: " + required}},
		"a host with a port":      {picker: pickerHost("picker.example.com:80"), want: []string{"http.host: " + invalid}},
		"a host with a user":      {picker: pickerHost("user@picker.example.com"), want: []string{"http.host: " + invalid}},
		"a host with a path":      {picker: pickerHost("picker.example.com/a"), want: []string{"http.host: " + invalid}},
		"a host in upper case":    {picker: pickerHost("Picker.example.com"), want: []string{"http.host: " + invalid}},
		"a host with a line":      {picker: pickerHost("picker\r\n.example.com"), want: []string{"http.host: " + invalid}},
		"a long host":             {picker: pickerHost(strings.Repeat("a", 254)), want: []string{"http.host: " + invalid}},
		"a decimal address":       {picker: pickerHost("2130706433"), want: []string{"http.host: " + invalid}},
		"a hexadecimal address":   {picker: pickerHost("0x7f000001"), want: []string{"http.host: " + invalid}},
		"a hexadecimal part":      {picker: pickerHost("127.0.0.0x1"), want: []string{"http.host: " + invalid}},
		"an octal address":        {picker: pickerHost("0177.0.0.1"), want: []string{"http.host: " + invalid}},
		"a short address":         {picker: pickerHost("127.1"), want: []string{"http.host: " + invalid}},
		"leading zeros":           {picker: pickerHost("192.0.2.010"), want: []string{"http.host: " + invalid}},
		"a mapped address":        {picker: pickerHost("::ffff:127.0.0.1"), want: []string{"http.host: " + invalid}},
		"another spelling":        {picker: pickerHost("2001:DB8::0:1"), want: []string{"http.host: " + invalid}},
		"a zone":                  {picker: pickerHost("fe80::1%eth0"), want: []string{"http.host: " + invalid}},
		"brackets":                {picker: pickerHost("[::1]"), want: []string{"http.host: " + invalid}},
		"a named port":            {picker: pickerPort(intstr.FromString("http"), "picker.shop.svc")},
		"the last port":           {picker: pickerPort(intstr.FromInt32(65535), "192.0.2.1")},
		"port 0":                  {picker: pickerPort(intstr.FromInt32(0), "192.0.2.1"), want: []string{"http.port: " + invalid}},
		"port 65536":              {picker: pickerPort(intstr.FromInt32(65536), "192.0.2.1"), want: []string{"http.port: " + invalid}},
		"a negative port":         {picker: pickerPort(intstr.FromInt32(-1), "192.0.2.1"), want: []string{"http.port: " + invalid}},
		"a port by a wrong name":  {picker: pickerPort(intstr.FromString("HTTP_port"), "picker.shop.svc"), want: []string{"http.port: " + invalid}},
		"a named port elsewhere":  {picker: pickerPort(intstr.FromString("http"), "picker.example.com"), want: []string{"http.port: " + invalid}},
		"a named port below":      {picker: pickerPort(intstr.FromString("http"), "picker.shop.svc.example"), want: []string{"http.port: " + invalid}},
		"a named port of a label": {picker: pickerPort(intstr.FromString("http"), "picker"), want: []string{"http.port: " + invalid}},
		"a path and a query":      {picker: pickerPath("/a/b?c=d%20e")},
		"no path":                 {picker: pickerPath(""), want: []string{"http.path: " + invalid}},
		"a relative path":         {picker: pickerPath("a"), want: []string{"http.path: " + invalid}},
		"a URL":                   {picker: pickerPath("http://127.0.0.1/"), want: []string{"http.path: " + invalid}},
		"a path with a host":      {picker: pickerPath("//127.0.0.1/"), want: []string{"http.path: " + invalid}},
		"a path with a fragment":  {picker: pickerPath("/a#b"), want: []string{"http.path: " + invalid}},
		"a path with a line":      {picker: pickerPath("/a\r\nX: y"), want: []string{"http.path: " + invalid}},
		"a query with a blank":    {picker: pickerPath("/a?b HTTP/1.0"), want: []string{"http.path: " + invalid}},
		"a path for a terminal":   {picker: pickerPath("/\u009b2J\u202e"), want: []string{"http.path: " + invalid}},
		"a long path":             {picker: pickerPath("/" + strings.Repeat("a", 2047))},
		"too long a path":         {picker: pickerPath("/" + strings.Repeat("a", 2048)), want: []string{"http.path: " + tooLong}},
		"another scheme":          {picker: pickerHTTP(func(h *core.HTTPDownscalePodPicker) { h.Scheme = "FTP" }), want: []string{"http.scheme: " + unsupported}},
		"HTTPS":                   {picker: https(nil)},
		"a certificate":           {picker: https(caBundle)},
		"a long certificate":      {picker: https(slices.Concat(caBundle, bytes.Repeat([]byte("\n"), 64<<10-len(caBundle))))},
		"no certificate":          {picker: https([]byte("s3cr3t")), want: []string{"http.caBundle: " + invalid}},
		"too long a certificate":  {picker: https([]byte(strings.Repeat("s3cr3t", 11000))), want: []string{"http.caBundle: " + tooLong}},
		"a certificate for HTTP":  {picker: pickerHTTP(func(h *core.HTTPDownscalePodPicker) { h.CABundle = caBundle }), want: []string{"http.caBundle: " + forbidden}},
		"no retries":              {picker: newPicker(func(p *core.DownscalePodPicker) { p.MaxRetries = ptr.To[int32](0) })},
		"ten retries":             {picker: newPicker(func(p *core.DownscalePodPicker) { p.MaxRetries = ptr.To[int32](10) })},
		"eleven retries":          {picker: newPicker(func(p *core.DownscalePodPicker) { p.MaxRetries = ptr.To[int32](11) }), want: []string{"maxRetries: " + invalid}},
		"negative retries":        {picker: newPicker(func(p *core.DownscalePodPicker) { p.MaxRetries = ptr.To[int32](-1) }), want: []string{"maxRetries: " + invalid}},
		"thirty seconds":          {picker: newPicker(func(p *core.DownscalePodPicker) { p.TimeoutSeconds = ptr.To[int32](30) })},
		"thirty-one seconds":      {picker: newPicker(func(p *core.DownscalePodPicker) { p.TimeoutSeconds = ptr.To[int32](31) }), want: []string{"timeoutSeconds: " + invalid}},
		"no time":                 {picker: newPicker(func(p *core.DownscalePodPicker) { p.TimeoutSeconds = ptr.To[int32](0) }), want: []string{"timeoutSeconds: " + invalid}},
		"a header":                {picker: pickerHeader(core.HTTPDownscalePodPickerHeader{Name: "Authorization", Value: "s3cr3t\tü"})},
		"an empty header":         {picker: pickerHeader(core.HTTPDownscalePodPickerHeader{Name: "X-Empty"})},
		"a header from a Secret":  {picker: pickerHeader(core.HTTPDownscalePodPickerHeader{Name: "X-Token", ValueFrom: fromSecret("token", "value")})},
		"a header without a name": {picker: pickerHeader(core.HTTPDownscalePodPickerHeader{}), want: []string{"http.httpHeaders[0].name: " + invalid}},
		"a header with a colon":   {picker: pickerHeader(core.HTTPDownscalePodPickerHeader{Name: "X:"}), want: []string{"http.httpHeaders[0].name: " + invalid}},
		"the host":                {picker: pickerHeader(core.HTTPDownscalePodPickerHeader{Name: "host"}), want: []string{"http.httpHeaders[0].name: " + invalid}},
		"the length":              {picker: pickerHeader(core.HTTPDownscalePodPickerHeader{Name: "content-LENGTH"}), want: []string{"http.httpHeaders[0].name: " + invalid}},
		"the encoding":            {picker: pickerHeader(core.HTTPDownscalePodPickerHeader{Name: "Transfer-Encoding"}), want: []string{"http.httpHeaders[0].name: " + invalid}},
		"the key":                 {picker: pickerHeader(core.HTTPDownscalePodPickerHeader{Name: "idempotency-key"}), want: []string{"http.httpHeaders[0].name: " + invalid}},
		"one of Kubernetes":       {picker: pickerHeader(core.HTTPDownscalePodPickerHeader{Name: "kubernetes-namespace"}), want: []string{"http.httpHeaders[0].name: " + invalid}},
		"a value with a line":     {picker: pickerHeader(core.HTTPDownscalePodPickerHeader{Name: "X-Token", Value: "s3cr3t\r\nHost: a"}), want: []string{"http.httpHeaders[0].value: " + invalid}},
		"a value that deletes":    {picker: pickerHeader(core.HTTPDownscalePodPickerHeader{Name: "X-Token", Value: "s3cr3t\x7f"}), want: []string{"http.httpHeaders[0].value: " + invalid}},
		"a long value":            {picker: pickerHeader(core.HTTPDownscalePodPickerHeader{Name: "X-Token", Value: strings.Repeat("a", 4096)})},
		"too long a value":        {picker: pickerHeader(core.HTTPDownscalePodPickerHeader{Name: "X-Token", Value: strings.Repeat("s3cr3t", 683)}), want: []string{"http.httpHeaders[0].value: " + tooLong}},
		"a long name":             {picker: pickerHeader(core.HTTPDownscalePodPickerHeader{Name: strings.Repeat("x", 257)}), want: []string{"http.httpHeaders[0].name: " + tooLong}},
		"two sources": {
			picker: pickerHeader(core.HTTPDownscalePodPickerHeader{Name: "X-Token", Value: "s3cr3t", ValueFrom: fromSecret("token", "value")}),
			want:   []string{"http.httpHeaders[0].valueFrom: " + forbidden},
		},
		"an empty source":            {picker: pickerHeader(core.HTTPDownscalePodPickerHeader{Name: "X-Token", ValueFrom: &core.HTTPDownscalePodPickerHeaderSource{}}), want: []string{"http.httpHeaders[0].valueFrom.secretKeyRef: " + required}},
		"a Secret without a name":    {picker: pickerHeader(core.HTTPDownscalePodPickerHeader{Name: "X-Token", ValueFrom: fromSecret("", "value")}), want: []string{"http.httpHeaders[0].valueFrom.secretKeyRef.name: " + required}},
		"a Secret with a wrong name": {picker: pickerHeader(core.HTTPDownscalePodPickerHeader{Name: "X-Token", ValueFrom: fromSecret("../token", "value")}), want: []string{"http.httpHeaders[0].valueFrom.secretKeyRef.name: " + invalid}},
		"a Secret without a key":     {picker: pickerHeader(core.HTTPDownscalePodPickerHeader{Name: "X-Token", ValueFrom: fromSecret("token", "")}), want: []string{"http.httpHeaders[0].valueFrom.secretKeyRef.key: " + required}},
		"a Secret with a wrong key":  {picker: pickerHeader(core.HTTPDownscalePodPickerHeader{Name: "X-Token", ValueFrom: fromSecret("token", "a/b")}), want: []string{"http.httpHeaders[0].valueFrom.secretKeyRef.key: " + invalid}},
		"four Secrets":               {picker: pickerSecrets(4)},
		"five Secrets":               {picker: pickerSecrets(5), want: []string{"http.httpHeaders: " + invalid}},
		"thirty-two headers":         {picker: manyHeaders(32)},
		"thirty-three headers":       {picker: manyHeaders(33), want: []string{"http.httpHeaders: " + tooMany}},
	} {
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		template := core.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selector.MatchLabels}, Spec: podSpecOf()}
		options := corevalidation.PodValidationOptions{}
		spec := field.NewPath("spec")
		for kind, errs := range map[string]field.ErrorList{
			"Deployment": ValidateDeploymentSpec(&apps.DeploymentSpec{Selector: selector, Template: template, DownscalePodPicker: test.picker,
				Strategy: apps.DeploymentStrategy{Type: apps.RecreateDeploymentStrategyType}, ProgressDeadlineSeconds: ptr.To[int32](600)}, nil, spec, options),
			"ReplicaSet": ValidateReplicaSetSpec(&apps.ReplicaSetSpec{Selector: selector, Template: template, DownscalePodPicker: test.picker}, nil, spec, options),
		} {
			t.Run(name+" of a "+kind, func(t *testing.T) {
				var got []string
				for _, err := range errs {
					got = append(got, strings.TrimPrefix(err.Field, "spec.downscalePodPicker.")+": "+string(err.Type))
					if strings.Contains(err.Error(), "s3cr3t") {
						t.Errorf("the error has a value: %v", err)
					}
					if err.Detail == "" && err.Type != field.ErrorTypeNotSupported {
						t.Errorf("the error does not say what is wrong: %v", err)
					}
				}
				if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
					t.Errorf("got %q, want %q: %v", got, test.want, errs)
				}
			})
		}
	}
}

func manyHeaders(count int) *core.DownscalePodPicker {
	return pickerHTTP(func(h *core.HTTPDownscalePodPicker) {
		h.HTTPHeaders = slices.Repeat([]core.HTTPDownscalePodPickerHeader{{Name: "X-Many"}}, count)
	})
}

// No header can be set that the request has itself, or that is for those who forward it.
func TestPickerHeadersOfRequest(t *testing.T) {
	for name := range strings.FieldsSeq("Accept Accept-Encoding Connection Content-Encoding Content-Length Content-Type Expect Host Idempotency-Key Keep-Alive " +
		"Kubernetes-Namespace Kubernetes-ReplicaSet Kubernetes-Other Proxy-Authenticate Proxy-Authorization Proxy-Connection TE Trailer Transfer-Encoding Upgrade") {
		for _, spelled := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
			if errs := validateDownscalePodPicker(pickerHeader(core.HTTPDownscalePodPickerHeader{Name: spelled}), nil); len(errs) != 1 || errs[0].Field != "http.httpHeaders[0].name" {
				t.Errorf("%s: %v", spelled, errs)
			}
		}
	}
}

func podSpecOf() core.PodSpec {
	return core.PodSpec{
		RestartPolicy: core.RestartPolicyAlways, DNSPolicy: core.DNSDefault, TerminationGracePeriodSeconds: ptr.To[int64](30),
		Containers: []core.Container{{Name: "main", Image: "image", ImagePullPolicy: core.PullIfNotPresent, TerminationMessagePolicy: core.TerminationMessageReadFile}},
	}
}
