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
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/test/integration/framework"
)

// logsVariable names the directory for the logs of components, a file for each package. Without it
// they are part of the output of the tests, whose failures are then hard to find.
const logsVariable = "INTEGRATION_TEST_LOGS"

// Main is the TestMain of a package of integration tests: it starts the etcd that they share.
//
// Logs are not written to os.Stderr. With go test -json, the testing package replaces it when it
// starts the tests. This would be a data race with etcd, which already writes its log.
func Main(m *testing.M) {
	logs, err := createLogs()
	if err != nil {
		fmt.Fprintln(os.Stderr, "creating the file for the logs of components:", err)
		os.Exit(1)
	}
	klog.LogToStderr(false)
	// A message is also written to the outputs of all lower severities.
	klog.SetOutput(io.Discard)
	klog.SetOutputBySeverity("INFO", logs)
	framework.EtcdMain(m.Run)
}

func createLogs() (io.Writer, error) {
	dir := os.Getenv(logsVariable)
	if dir == "" {
		return os.Stdout, nil
	}
	return os.Create(filepath.Join(dir, filepath.Base(os.Args[0])+".log"))
}
