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
package evictions

import (
	"crypto/sha256"
	"encoding/hex"
)

// maxFieldManagerLength is the maximum length that the API server accepts.
const maxFieldManagerLength = 128

// FieldManager returns the field manager of the requester or responder with that name. It is the
// name itself, so that "kubectl apply --server-side --field-manager=<name>" acts as the same
// participant. A name that is too long for a field manager is truncated and ends in a hash of the
// whole name, which keeps it unique.
//
// Do not apply the entry of a participant with another field manager: an entry with two owners
// remains when one of them removes it.
func FieldManager(name string) string {
	if len(name) <= maxFieldManagerLength {
		return name
	}
	hash := sha256.Sum256([]byte(name))
	suffix := "-" + hex.EncodeToString(hash[:8])
	return name[:maxFieldManagerLength-len(suffix)] + suffix
}
