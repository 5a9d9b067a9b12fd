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

package nodemaintenance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"k8s.io/kubernetes/pkg/kubelet/nodemaintenance/metrics"
)

// shutdownRecordFile is the name of the record in the root directory of the kubelet. Without the
// file, the annotations of the maintenance say whether the kubelet has to end it.
const shutdownRecordFile = "node_shutdown_maintenance_state"

// shutdownRecordVersion is the version of the format. A kubelet that does not know the version of a
// file ignores the file.
const shutdownRecordVersion = 1

// shutdownRecord is what the kubelet stores about shutdowns of its node.
type shutdownRecord struct {
	Version int `json:"version"`
	// BootID is the boot whose shutdown may have a maintenance which has not ended. Empty if there
	// is none.
	BootID string `json:"bootID,omitempty"`
	// IsOwn means that it has one, so that static pods are withheld for it. Otherwise an
	// administrator may have taken them away.
	IsOwn bool `json:"isOwn,omitempty"`
	// StartTime is when the shutdown began that is in progress in this boot, zero if none is.
	StartTime time.Time `json:"startTime,omitzero"`
	// Results counts the results of all shutdowns, and PodsLeft is how many pods the last one left.
	Results  map[metrics.ShutdownDrainResult]int `json:"results,omitempty"`
	PodsLeft int                                 `json:"podsLeft"`
}

func (r shutdownRecord) clone() shutdownRecord {
	r.Results = maps.Clone(r.Results)
	return r
}

func (r shutdownRecord) equal(other shutdownRecord) bool {
	return r.BootID == other.BootID && r.IsOwn == other.IsOwn && r.StartTime.Equal(other.StartTime) && r.PodsLeft == other.PodsLeft && maps.Equal(r.Results, other.Results)
}

// readShutdownRecord reads the record in the directory. The record is unchanged if there is none.
func readShutdownRecord(directory string, record *shutdownRecord) error {
	path := filepath.Join(directory, shutdownRecordFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var content shutdownRecord
	if err := json.Unmarshal(data, &content); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if content.Version != shutdownRecordVersion {
		return fmt.Errorf("reading %s: version is %d: this kubelet knows version %d only", path, content.Version, shutdownRecordVersion)
	}
	for result, count := range content.Results {
		if count < 0 {
			return fmt.Errorf("reading %s: %d results %q", path, count, result) // A counter would panic.
		}
	}
	*record = content
	return nil
}

// IsMaintenanceOver reports whether a maintenance for a shutdown in an earlier boot has withheld
// static pods. Its end must not depend on the API server, which may be one of these pods.
func IsMaintenanceOver(directory, bootID string) (bool, error) {
	var record shutdownRecord
	err := readShutdownRecord(directory, &record)
	return record.IsOwn && record.BootID != "" && record.BootID != bootID, err
}

// writeShutdownRecord replaces the record in one step.
func writeShutdownRecord(directory string, record shutdownRecord) error {
	record.Version = shutdownRecordVersion
	data, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return replaceFile(directory, shutdownRecordFile, data)
}
