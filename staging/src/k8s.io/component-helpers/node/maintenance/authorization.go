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

package maintenance

// ControlVerb, on nodes/status, allows to write status.maintenanceStatus of a Node, which
// update and patch alone do not: many programs have these to report how a node is. It
// allows to say which pods leave the node, and that a maintenance has cordoned it. It is
// for the node maintenance controller only.
const ControlVerb = "control"
