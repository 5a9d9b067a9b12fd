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

// Package history checks what a cluster has done, revision by revision, as etcd has stored it.
//
// etcd has one order of all writes, which no cache and no clock of a component can change. Follow reads
// them, a World has all objects as of one of them, and a Checker evaluates rules at each. The rules are what
// users rely on, such as that a pod is evicted only while its request wants that. They share no code with the
// controllers, which would then make the same mistake twice.
package history
