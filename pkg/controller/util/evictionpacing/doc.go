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

// Package evictionpacing decides how many pods of a workload leave at a time if their eviction is requested.
// The controllers of StatefulSets and of Deployments without a surge let them leave one after another, or as
// many as the owner of the pods permits. The decision is pure: it depends on the pods and their requests
// only.
package evictionpacing
