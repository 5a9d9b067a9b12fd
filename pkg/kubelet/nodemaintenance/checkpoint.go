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
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/kubernetes/pkg/kubelet/nodemaintenance/metrics"
)

const (
	// checkpointFile is the name of the checkpoint in the root directory of the kubelet. Without
	// the file, a restarted kubelet runs all static pods.
	checkpointFile = "node_maintenance_state"

	// checkpointVersion is the version of the format. A kubelet that does not know the version of a
	// file ignores the file.
	checkpointVersion = 1

	// maxCheckpointSize, in bytes, limits what is read. A thousand static pods with the largest
	// labels that are usual are below it.
	maxCheckpointSize = 4 << 20
)

// checkpointContent is the content of the checkpoint.
type checkpointContent struct {
	Version int        `json:"version"`
	Pods    []podState `json:"pods"`
}

// checkpoint is a file that survives a crash of the kubelet and of the machine.
type checkpoint struct {
	directory string
}

func (c *checkpoint) path() string { return filepath.Join(c.directory, checkpointFile) }

// read returns the states in the file, none if there is no file.
func (c *checkpoint) read() ([]podState, error) {
	states, err := c.parse()
	if err != nil {
		metrics.CountCheckpointError(metrics.Read)
		return nil, fmt.Errorf("reading %s: %w", c.path(), err)
	}
	return states, nil
}

func (c *checkpoint) parse() ([]podState, error) {
	file, err := os.Open(c.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxCheckpointSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxCheckpointSize {
		return nil, fmt.Errorf("it is larger than %d bytes", maxCheckpointSize)
	}
	var content checkpointContent
	if err := json.Unmarshal(data, &content); err != nil {
		return nil, err
	}
	if content.Version != checkpointVersion {
		return nil, fmt.Errorf("version is %d: this kubelet knows version %d only", content.Version, checkpointVersion)
	}
	for _, s := range content.Pods {
		if err := s.validate(); err != nil {
			return nil, err
		}
	}
	return content.Pods, nil
}

func (s podState) validate() error {
	if s.State != held && s.State != refused {
		return fmt.Errorf("the state of pod %q is %q: must be %s or %s", s.key(), s.State, held, refused)
	}
	problems := append(validation.ValidateNamespaceName(s.Namespace, false), validation.NameIsDNSSubdomain(s.Name, false)...)
	if len(problems) > 0 {
		return fmt.Errorf("invalid pod %q: %s", s.key(), strings.Join(problems, "; "))
	}
	return nil
}

// write replaces the file in one step, so that a crash leaves either the old or the new content.
func (c *checkpoint) write(states []podState) error {
	if err := c.replace(states); err != nil {
		metrics.CountCheckpointError(metrics.Write)
		return fmt.Errorf("writing %s: %w", c.path(), err)
	}
	return nil
}

func (c *checkpoint) replace(states []podState) error {
	data, err := json.Marshal(checkpointContent{Version: checkpointVersion, Pods: states})
	if err != nil {
		return err
	}
	if len(data) > maxCheckpointSize {
		return fmt.Errorf("the content is larger than %d bytes", maxCheckpointSize)
	}
	return replaceFile(c.directory, checkpointFile, data)
}

// replaceFile replaces a file of the directory in one step, and survives a crash of the machine.
func replaceFile(directory, name string, data []byte) error {
	path := filepath.Join(directory, name)
	// Always the same name, so that a crash leaves at most one such file.
	temporary := path + ".new"
	err := writeAndSync(temporary, data)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		_ = os.Remove(temporary) // The next write replaces what is left.
		return err
	}
	return syncDirectory(directory)
}

func writeAndSync(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// RemoveCheckpoint removes the checkpoint in the directory, and reports whether there was one.
func RemoveCheckpoint(directory string) (bool, error) {
	c := checkpoint{directory: directory}
	err := os.Remove(c.path())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, syncDirectory(directory)
}
