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
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// verify lists all that keeps the repository from being complete. It changes
// neither the repository nor the tree.
func (w *workspace) verify() error {
	set, err := readPatches(w.root)
	if err != nil {
		return err
	}
	return errors.Join(checkHeaders(set), w.checkIndex(set), w.checkRefreshed())
}

// checkHeaders demands that each patch says why it is there.
func checkHeaders(set *patchSet) error {
	var errs []error
	for _, p := range set.patches {
		if p.generated() {
			continue
		}
		for _, field := range []string{"Why", "Gate"} {
			if headerField(p.header, field) == "" {
				hint := "say it in the lines above the diff"
				if field == "Gate" {
					hint = "name the feature gate in the lines above the diff, or say none"
				}
				errs = append(errs, fmt.Errorf("%s: %s: is empty or missing: %s", p.file, field, hint))
			}
		}
	}
	return errors.Join(errs...)
}

// checkIndex compares PATCHES.md with what index would write.
func (w *workspace) checkIndex(set *patchSet) error {
	have, err := os.ReadFile(filepath.Join(w.root, indexFile))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if !bytes.Equal(have, renderIndex(set)) {
		return fmt.Errorf("%s: is not current: run hack/tree index", indexFile)
	}
	return nil
}

// checkRefreshed fails if tree or refresh had anything to do.
func (w *workspace) checkRefreshed() error {
	if err := w.loadSound(); err != nil {
		return err
	}
	plan, err := w.planSync(w.st.Base)
	if err != nil {
		return err
	}
	if !plan.empty() || plan.tree != w.st.Tree {
		return fmt.Errorf("the tree is not current: run make tree (%d files differ)", len(plan.lines()))
	}
	back, err := w.planRefresh()
	if err != nil {
		return err
	}
	var errs []error
	for _, line := range back.lines() {
		errs = append(errs, fmt.Errorf("make refresh would have %s", line))
	}
	return errors.Join(errs...)
}
