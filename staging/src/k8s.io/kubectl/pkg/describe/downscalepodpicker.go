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

package describe

import (
	"fmt"
	"net"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/downscalepodpicker"
)

// printDownscalePodPicker prints who is asked which pods to remove, if there is such a field. Values of
// headers are not printed: they may be secret.
func printDownscalePodPicker(w PrefixWriter, picker *corev1.DownscalePodPicker) {
	if picker == nil {
		return
	}
	if picker.HTTP == nil {
		w.Write(LEVEL_0, "Downscale Pod Picker:\t<unknown protocol>\n")
		return
	}
	http := picker.HTTP
	w.Write(LEVEL_0, "Downscale Pod Picker:\t%s://%s%s", strings.ToLower(string(http.Scheme)), net.JoinHostPort(http.Host, http.Port.String()), http.Path)
	if picker.MaxRetries != nil && picker.TimeoutSeconds != nil {
		attempts, timeout := "1 attempt", time.Duration(*picker.TimeoutSeconds)*time.Second
		if *picker.MaxRetries > 0 {
			attempts = fmt.Sprintf("%d attempts", *picker.MaxRetries+1)
		}
		w.Write(LEVEL_0, ", at most %s of %s, %s in all", attempts, timeout, downscalepodpicker.MaxDuration(int(*picker.MaxRetries), timeout))
	}
	w.Write(LEVEL_0, "\n")
	if len(http.CABundle) > 0 {
		w.Write(LEVEL_1, "CA Bundle:\t%d bytes\n", len(http.CABundle))
	}
	for _, header := range http.HTTPHeaders {
		source := ""
		if header.ValueFrom != nil && header.ValueFrom.SecretKeyRef != nil {
			ref := header.ValueFrom.SecretKeyRef
			source = fmt.Sprintf(" from the key %s of Secret %s", ref.Key, ref.Name)
			if ref.Optional != nil && *ref.Optional {
				source += ", if it exists"
			}
		}
		w.Write(LEVEL_1, "Header:\t%s%s\n", header.Name, source)
	}
}
