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

// Package simulation runs a randomized test once for each of many seeds.
//
// A run of a simulation goes through a fixed set of seeds, which is the same everywhere and
// always, and through random ones, which find over time what the fixed set does not. The
// environment changes the random ones:
//
//	SIMULATION_SEEDS=10000   run so many random seeds, and print how long it took
//	SIMULATION_SEED=4563     run this seed alone, to repeat a failure
//
// "make test-simulation SEEDS=" runs all simulations of the repository.
package simulation
