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
	"regexp"
	"strings"
)

var (
	baseVersionForm = regexp.MustCompile(`^v1\.[0-9]+\.[0-9]+(-[0-9a-z.]+)?$`)
	goDirective     = regexp.MustCompile(`(?m)^go (\S+)$`)
	moduleDirective = regexp.MustCompile(`(?m)^module (\S+)$`)
	debugDirective  = regexp.MustCompile(`(?m)^godebug .*\n`)
)

// runPin writes go.mod, go.sum and go.work of another base. All of it follows from the go.work of
// that base, so what else stands in these files is lost.
func (w *workspace) runPin() (string, error) {
	if !baseVersionForm.MatchString(w.to) {
		return "", fmt.Errorf("-to %q is no version of Kubernetes such as v1.37.3", w.to)
	}
	if baseVersion(w.pins) == w.to {
		return "go.mod pins " + w.to + " already", nil
	}
	downloaded, err := w.src.download(w.root, []module{{Path: mainModule, Version: w.to}})
	if err != nil {
		return "", err
	}
	kubernetes := downloaded[0]
	if kubernetes.Error != "" {
		return "", fmt.Errorf("%s@%s cannot be had: %s", mainModule, w.to, kubernetes.Error)
	}
	work, err := os.ReadFile(filepath.Join(kubernetes.Dir, "go.work"))
	if err != nil {
		return "", err
	}
	present, missing, err := w.downloadStaging(work)
	if err != nil {
		return "", err
	}
	present = append([]module{kubernetes}, present...)
	for _, m := range missing {
		if err := checkDispensable(m, present); err != nil {
			return "", err
		}
		fmt.Fprintf(w.out, "left out: %s@%s cannot be had, and no other module of the base requires it: %s\n", m.Path, m.Version, m.Error)
	}
	if err := w.writePins(present, work); err != nil {
		return "", err
	}
	return fmt.Sprintf("go.mod, go.sum and go.work pin %s instead of %s: %d modules, %d left out", w.to, baseVersion(w.pins), len(present), len(missing)), nil
}

// downloadStaging downloads the staging modules that a go.work of upstream names. Those that
// cannot be had are returned apart.
func (w *workspace) downloadStaging(work []byte) (present, missing []module, err error) {
	var wanted []module
	for _, use := range useStaging.FindAllSubmatch(work, -1) {
		wanted = append(wanted, module{Path: string(use[1]), Version: "v0." + strings.TrimPrefix(w.to, "v1.")})
	}
	if len(wanted) == 0 {
		return nil, nil, errors.New("the go.work of the base names no staging module")
	}
	downloaded, err := w.src.download(w.root, wanted)
	for _, m := range downloaded {
		if m.Error != "" {
			missing = append(missing, m)
		} else {
			present = append(present, m)
		}
	}
	return present, missing, err
}

// checkDispensable fails if a module that cannot be had is required by another one.
func checkDispensable(missing module, present []module) error {
	var needed []string
	for _, m := range present {
		data, err := os.ReadFile(filepath.Join(m.Dir, "go.mod"))
		if err != nil {
			return err
		}
		for line := range bytes.Lines(data) {
			fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(string(line)), "require "))
			if len(fields) >= 2 && fields[0] == missing.Path && fields[1] != "=>" {
				needed = append(needed, m.Path)
			}
		}
	}
	if len(needed) == 0 {
		return nil
	}
	return fmt.Errorf("%s@%s cannot be had, and is required by %s: wait until it is published, choose another version, or name a proxy that has it in GOPROXY: %s",
		missing.Path, missing.Version, strings.Join(needed, ", "), missing.Error)
}

// writePins writes the three files. go.mod, which says what is pinned, is last: a run that was
// killed before has to be repeated, and one that was killed behind it has written all of them.
func (w *workspace) writePins(modules []module, upstreamWork []byte) error {
	old, err := os.ReadFile(filepath.Join(w.root, "go.mod"))
	if err != nil {
		return err
	}
	name, version := moduleDirective.FindSubmatch(old), goDirective.FindSubmatch(upstreamWork)
	if name == nil || version == nil {
		return errors.New("go.mod names no module, or the go.work of the base no version of Go")
	}
	var mod, replace, sum, work strings.Builder
	fmt.Fprintf(&mod, "module %s\n\ngo %s\n\nrequire (\n", name[1], version[1])
	fmt.Fprintf(&work, "go %s\n\n", version[1])
	if debug := debugDirective.Find(upstreamWork); debug != nil {
		fmt.Fprintf(&work, "%s\n", debug)
	}
	work.WriteString("use (\n")
	for _, m := range modules {
		fmt.Fprintf(&mod, "\t%s %s\n", m.Path, m.Version)
		fmt.Fprintf(&sum, "%s %s %s\n%[1]s %[2]s/go.mod %[4]s\n", m.Path, m.Version, m.Sum, m.GoModSum)
		if m.Path == mainModule {
			work.WriteString("\t./_output/kubernetes\n")
			continue
		}
		fmt.Fprintf(&replace, "\t%s => %[1]s %s\n", m.Path, m.Version)
		fmt.Fprintf(&work, "\t./_output/kubernetes/%s%s\n", stagingDir, m.Path)
	}
	for _, file := range []struct{ name, text string }{
		{"go.work", work.String() + ")\n"},
		{"go.sum", sum.String()},
		{"go.mod", mod.String() + ")\n\nreplace (\n" + replace.String() + ")\n"},
	} {
		if _, err := writeFile(filepath.Join(w.root, file.name), content{modeFile, []byte(file.text)}); err != nil {
			return err
		}
	}
	return nil
}
