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
	"crypto/x509"
	"fmt"
	"net/netip"
	"net/textproto"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
)

// The bounds of a downscale pod picker.
const (
	maxPickerRetries        = 10
	maxPickerTimeoutSeconds = 30
	maxPickerPathBytes      = 2 << 10
	maxPickerCABundleBytes  = 64 << 10
	maxPickerHeaders        = 32
	maxPickerHeaderBytes    = 4 << 10
	maxPickerHeaderName     = 256
	maxPickerSecrets        = 4 // Each is read for each attempt.
)

// requestHeaders are headers that belong to the request and not to its author.
var requestHeaders = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Connection": true, "Content-Encoding": true, "Content-Length": true, "Content-Type": true,
	"Expect": true, "Host": true, "Idempotency-Key": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
	"Proxy-Connection": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// validateDownscalePodPicker validates the picker of a ReplicaSet or Deployment. Nil is valid.
func validateDownscalePodPicker(picker *core.DownscalePodPicker, path *field.Path) field.ErrorList {
	if picker == nil {
		return nil
	}
	var errs field.ErrorList
	for _, bounded := range []struct {
		name     string
		value    *int32
		min, max int32
	}{{"maxRetries", picker.MaxRetries, 0, maxPickerRetries}, {"timeoutSeconds", picker.TimeoutSeconds, 1, maxPickerTimeoutSeconds}} {
		if bounded.value != nil {
			for _, problem := range validation.IsInRange(int(*bounded.value), int(bounded.min), int(bounded.max)) {
				errs = append(errs, field.Invalid(path.Child(bounded.name), *bounded.value, problem))
			}
		}
	}
	if picker.HTTP == nil {
		return append(errs, field.Required(path.Child("http"), "is how the picker is asked"))
	}
	return append(errs, validateHTTPPicker(picker.HTTP, path.Child("http"))...)
}

func validateHTTPPicker(picker *core.HTTPDownscalePodPicker, path *field.Path) field.ErrorList {
	errs := validatePickerHost(picker.Host, path.Child("host"))
	errs = append(errs, validatePickerPort(picker, path.Child("port"))...)
	errs = append(errs, validatePickerPath(picker.Path, path.Child("path"))...)
	switch picker.Scheme {
	case core.URISchemeHTTP, core.URISchemeHTTPS:
	default:
		errs = append(errs, field.NotSupported(path.Child("scheme"), picker.Scheme, []core.URIScheme{core.URISchemeHTTP, core.URISchemeHTTPS}))
	}
	if len(picker.CABundle) > 0 {
		errs = append(errs, validatePickerCABundle(picker, path.Child("caBundle"))...)
	}
	headers := path.Child("httpHeaders")
	if len(picker.HTTPHeaders) > maxPickerHeaders {
		errs = append(errs, field.TooMany(headers, len(picker.HTTPHeaders), maxPickerHeaders))
	}
	secrets := sets.New[string]()
	for i, header := range picker.HTTPHeaders {
		errs = append(errs, validatePickerHeader(&header, headers.Index(i))...)
		if header.ValueFrom != nil && header.ValueFrom.SecretKeyRef != nil {
			secrets.Insert(header.ValueFrom.SecretKeyRef.Name)
		}
	}
	if len(secrets) > maxPickerSecrets {
		errs = append(errs, field.Invalid(headers, len(secrets), fmt.Sprintf("must take values from at most %d Secrets", maxPickerSecrets)))
	}
	return errs
}

// validatePickerHost accepts names and addresses in the one spelling that everything reads in the same
// way.
func validatePickerHost(host string, path *field.Path) field.ErrorList {
	if host == "" {
		return field.ErrorList{field.Required(path, "is the name or address of the picker, such as NAME.NAMESPACE.svc")}
	}
	if address, err := netip.ParseAddr(host); err == nil {
		switch {
		case address.Zone() != "":
			return field.ErrorList{field.Invalid(path, host, "must not have a zone, which means something on one machine only")}
		case address.String() != host || address.Is4In6():
			return field.ErrorList{field.Invalid(path, host, "must be written as "+address.Unmap().String())}
		}
		return nil
	}
	if strings.ContainsAny(host, ":/@[]") {
		return field.ErrorList{field.Invalid(path, host, "must be a name or an address only: scheme, port and path are fields of their own")}
	}
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1123Subdomain(host) {
		errs = append(errs, field.Invalid(path, host, problem))
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	if len(errs) == 0 && (strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x")) {
		errs = append(errs, field.Invalid(path, host, "must be a name, or an IPv4 address as four decimal numbers"))
	}
	return errs
}

// isServiceHost reports whether a host is that of a Service.
func isServiceHost(host string) bool {
	labels := strings.Split(strings.TrimSuffix(host, ".cluster.local"), ".")
	return len(labels) == 3 && labels[2] == "svc"
}

func validatePickerPort(picker *core.HTTPDownscalePodPicker, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch picker.Port.Type {
	case intstr.Int:
		for _, problem := range validation.IsValidPortNum(int(picker.Port.IntVal)) {
			errs = append(errs, field.Invalid(path, picker.Port.IntVal, problem))
		}
	default:
		for _, problem := range validation.IsValidPortName(picker.Port.StrVal) {
			errs = append(errs, field.Invalid(path, picker.Port.StrVal, problem))
		}
		if len(errs) == 0 && !isServiceHost(picker.Host) {
			errs = append(errs, field.Invalid(path, picker.Port.StrVal, "must be a number unless host is NAME.NAMESPACE.svc or NAME.NAMESPACE.svc.cluster.local"))
		}
	}
	return errs
}

func validatePickerPath(value string, path *field.Path) field.ErrorList {
	switch parsed, err := url.ParseRequestURI(value); {
	case len(value) > maxPickerPathBytes:
		return field.ErrorList{field.TooLong(path, "", maxPickerPathBytes)}
	case !strings.HasPrefix(value, "/") || strings.HasPrefix(value, "//"):
		return field.ErrorList{field.Invalid(path, value, "must begin with one slash")}
	case err != nil || parsed.Host != "" || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '#' }):
		return field.ErrorList{field.Invalid(path, value, "must be a path of a URL, without a fragment; escape other characters")}
	}
	return nil
}

func validatePickerCABundle(picker *core.HTTPDownscalePodPicker, path *field.Path) field.ErrorList {
	switch {
	case picker.Scheme != core.URISchemeHTTPS:
		return field.ErrorList{field.Forbidden(path, "may only be set with scheme HTTPS")}
	case len(picker.CABundle) > maxPickerCABundleBytes:
		return field.ErrorList{field.TooLong(path, "", maxPickerCABundleBytes)}
	case !x509.NewCertPool().AppendCertsFromPEM(picker.CABundle):
		return field.ErrorList{field.Invalid(path, "", "must have at least one certificate in PEM")}
	}
	return nil
}

func validatePickerHeader(header *core.HTTPDownscalePodPickerHeader, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	name := textproto.CanonicalMIMEHeaderKey(header.Name)
	for _, problem := range validation.IsHTTPHeaderName(header.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), header.Name, problem))
	}
	if requestHeaders[name] || strings.HasPrefix(name, "Kubernetes-") {
		errs = append(errs, field.Invalid(path.Child("name"), header.Name, "belongs to the request itself and cannot be set"))
	}
	if len(header.Name) > maxPickerHeaderName {
		errs = append(errs, field.TooLong(path.Child("name"), "", maxPickerHeaderName))
	}
	if len(header.Value) > maxPickerHeaderBytes {
		errs = append(errs, field.TooLong(path.Child("value"), "", maxPickerHeaderBytes))
	} else if strings.ContainsFunc(header.Value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		errs = append(errs, field.Invalid(path.Child("value"), "", "must not have control characters such as line breaks")) // The value may be secret.
	}
	from := header.ValueFrom
	switch {
	case from == nil:
		return errs
	case header.Value != "":
		return append(errs, field.Forbidden(path.Child("valueFrom"), "may not be set together with value"))
	case from.SecretKeyRef == nil:
		return append(errs, field.Required(path.Child("valueFrom", "secretKeyRef"), "is the only source"))
	}
	return append(errs, validatePickerSecret(from.SecretKeyRef, path.Child("valueFrom", "secretKeyRef"))...)
}

func validatePickerSecret(ref *core.SecretKeySelector, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "is the name of a Secret in the same namespace"))
	}
	for _, problem := range validation.IsDNS1123Subdomain(ref.Name) {
		if ref.Name != "" {
			errs = append(errs, field.Invalid(path.Child("name"), ref.Name, problem))
		}
	}
	if ref.Key == "" {
		return append(errs, field.Required(path.Child("key"), "is the key of the Secret whose value is sent"))
	}
	for _, problem := range validation.IsConfigMapKey(ref.Key) {
		errs = append(errs, field.Invalid(path.Child("key"), ref.Key, problem))
	}
	return errs
}
