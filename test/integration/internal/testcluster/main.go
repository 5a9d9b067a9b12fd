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

package testcluster

import (
	"io"
	"os"
	"testing"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/test/integration/framework"
)

// Main is the TestMain of a package of integration tests: it starts the etcd that they share.
//
// Logs go to standard output. With go test -json, the testing package replaces os.Stderr when it
// starts the tests, while the log of etcd is already written there: a data race.
func Main(m *testing.M) {
	klog.LogToStderr(false)
	// A message is also written to the outputs of all lower severities.
	klog.SetOutput(io.Discard)
	klog.SetOutputBySeverity("INFO", os.Stdout)
	framework.EtcdMain(m.Run)
}
