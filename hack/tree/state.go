/*
Copyright The Kubernetes Authors.

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

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// stateVersion changes when an older tool could misread the state.
const stateVersion = 1

// state is what the tool remembers about a tree between two runs. It is
// written last, so that it never promises more than what is laid.
type state struct {
	Version int `json:"version"`
	// BaseKey names the modules that Base, a commit, was made of.
	BaseKey string `json:"baseKey"`
	Base    string `json:"base"`
	// Tree is the git tree, base plus patches, that was laid last.
	Tree string `json:"tree"`
	// Pending are trees that a run began to lay. A run that was killed leaves
	// them here, and the next one accepts their files as laid by the tool.
	Pending []string `json:"pending,omitempty"`
	// Patches is the digest of the patches that Tree was computed from.
	Patches string `json:"patches"`
	// Copies is set if our files are laid as copies.
	Copies bool `json:"copies,omitempty"`
	// Ours are our files in the tree, by path.
	Ours map[string]laid `json:"ours"`
	// Merged are patches that merge turned into edits of the tree, with the
	// digest of the patch file. They wait for a refresh to write them anew.
	Merged map[string]string `json:"merged,omitempty"`
}

// laid says which contents of one of our files, as sums, the tool may have left
// in the tree. There is more than one only after a killed run.
type laid struct {
	Sums []string `json:"sums"`
}

func (l laid) has(sum string) bool {
	for _, s := range l.Sums {
		if s == sum {
			return true
		}
	}
	return false
}

func statePath(gitDir string) string { return filepath.Join(gitDir, "tree-state.json") }

// loadState returns nil without an error if there is no tree.
func loadState(dir string) (*state, error) {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	file := statePath(filepath.Join(dir, ".git"))
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s was not made by this tool, or is damaged (%w): move it away and run make tree", dir, err)
	}
	st := &state{}
	if err := json.Unmarshal(data, st); err != nil {
		return nil, fmt.Errorf("%s is damaged (%w): save your edits, remove %s and run make tree", file, err, dir)
	}
	if st.Version != stateVersion {
		return nil, fmt.Errorf("%s has version %d, this tool writes %d: run refresh with the tool that made the tree, remove %s and run make tree",
			file, st.Version, stateVersion, dir)
	}
	if st.Ours == nil {
		st.Ours = map[string]laid{}
	}
	return st, nil
}

// save writes the state unless the file already says the same.
func (s *state) save(gitDir string) error {
	data, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return err
	}
	_, err = writeIfChanged(statePath(gitDir), append(data, '\n'), 0o644, gitDir)
	return err
}
