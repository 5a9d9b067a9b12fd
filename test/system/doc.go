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

// Package system holds tests of whole control planes: they start etcd, kube-apiserver,
// kube-controller-manager and kubectl as processes, and compare the fork with its pristine base.
//
//	make test-upgrade  TestUpgrade, TestPickerUpgrade, TestFleetUpgrade, TestLifecycleUpgrade: the base and the fork take turns on one etcd, as in KEP-4563
//	make test-upgrade-fork  TestForkUpgrade: the same with the fork on the base before, and both at once
//	make test-drain    TestDrain: kubectl drain, cordon and uncordon against those of the base
//	make test-chaos    TestChaos: components are killed again and again during 200 evictions; TestSuspendedLeader: they are suspended while requests are withdrawn
//	make test-histories TestHistories: actors with different interests and faults on two of everything; each revision of etcd is checked
//	make test-surge    TestSurge: workloads leave a node without downtime
//	make test-cases    TestCases: public reports of drains that went wrong, on the base and on the fork
//	make test-docs     TestTutorial: the commands of docs/tutorial.md print what it shows
//	make demo          TestDemoMaintenance: a drain with kubectl maintenance, explained
//	make demo-evictionrequest  TestDemoEvictionRequest: single evictions, explained
//	make demo-podpicker        TestDemoPodPicker: scale-downs with a picker, and without
//	make demo-responder        TestDemoResponder: a drain, in which a responder of lifecycle.k8s.io saves data
//	make demo-real     TestDemoReal: a drain of a real node while real requests are sent
//
// The targets build the programs and pass their directory in the environment. Without it the tests
// skip.
//
// # Reading order
//
//	cluster_test.go   starts a control plane, waits, and has the helpers that all tests use
//	fixtures_test.go  pods, workloads, budgets, maintenances
//	eviction_test.go  requests for evictions, and the interceptor that answers them
//	upgrade_test.go   the steps of KEP-4563; upgrade_surge_test.go has those of the workloads,
//	                  upgrade_picker_test.go those of downscale pod pickers, upgrade_fleet_test.go those of
//	                  a rollout over many nodes, and upgrade_fleet_checks_test.go what must be true of it;
//	                  upgrade_lifecycle_test.go interrupts evictions by lifecycle.k8s.io, with its checks beside it;
//	                  upgrade_fork_test.go runs these scenarios in one cluster, and
//	                  upgrade_fork_checks_test.go compares what API servers show
//	drain_test.go     compares the kubectls; drain_scenarios_test.go says on what
//	chaos_test.go     the kills; chaos_nodes_test.go acts as kubelet and interceptor
//	suspended_test.go the leader that is suspended, and the slow webhook
//	histories_test.go what is expected in the end; histories_faults_test.go and histories_network_test.go disturb
//	                  programs and connections; histories_actors_test.go acts as owners, administrators, evictors,
//	                  tenants and kubelets, histories_limits_test.go has quotas and policies, histories_holds_test.go
//	                  writes and watches that are held, and histories_plans_test.go how plans change and end; the rules
//	                  are in test/utils/history
//	surge_test.go     the drains; surge_checks_test.go says what must be true of them
//	cases_test.go     the public cases; cases_format_test.go reads them from testdata/cases
//	demo_test.go      shows commands and checks; demo_maintenance_test.go,
//	                  demo_evictionrequest_test.go, demo_podpicker_test.go and demo_responder_test.go are the demos;
//	                  demo_checks_test.go says what must be true, demo_downtime_test.go compares with
//	                  kubectl drain of the base
//	demo_real_test.go is the demo with real nodes; requests_test.go sends the requests
//	tutorial_test.go  reads and runs the document; tutorial_output_test.go tests how it compares
package system
