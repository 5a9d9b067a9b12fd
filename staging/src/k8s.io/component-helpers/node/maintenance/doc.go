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

// Package maintenance has the rules that all components of a NodeMaintenance must share
// (KEP-4212): the type of a pod, the order of a drain plan, which pods the drain targets of a node
// select, and what delays an eviction.
//
// The controllers of node maintenances, eviction requests and workloads, the kubelet, kube-apiserver
// (validation, admission, registry, authorization) and kubectl use it. All functions are pure.
//
// # Files
//
//	plan.go                          the standard plan, and which entry of a plan takes a pod
//	targets.go                       drain targets, and which pods they take
//	nodeselector.go                  node selectors, ready for many nodes
//	nodeorder.go                     in which order nodes of a rollout begin
//	causes.go                        why pods are left: one row for each cause. Those that do not follow
//	                                 from pod and request, ownBlocker in decision/pod.go of the
//	                                 nodemaintenance-controller finds
//	blockers.go                      what delays an eviction, and groups of the same cause
//	blockerlist.go, blockermessage.go  the same as a status lists them, and as sentences
//	wait.go                          what nodes wait for, as sentences
//	admission.go                     the admissions of a node
//	podpolicy.go, escalation.go      spec.podPolicies, spec.escalation
//	participation.go                 which kubelets stop static pods
//	comesback.go                     pods that come back to a cordoned node
//	removal.go, departure.go         nodes that others remove, and nodes whose pods have to leave
//	startup.go, shutdown.go          startup taints, and shutdowns of kubelets
//	authorization.go                 the verb for status.maintenanceStatus of nodes
package maintenance
