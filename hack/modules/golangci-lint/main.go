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

// Golangci-lint with upstream's plugins linked in: upstream builds them as shared
// objects, which needs cgo.
package main

import (
	"fmt"
	"os"
	"runtime"

	"github.com/golangci/golangci-lint/v2/pkg/commands"
	"github.com/golangci/golangci-lint/v2/pkg/exitcodes"
	"github.com/golangci/plugin-module-register/register"
	"sigs.k8s.io/logtools/logcheck/gclplugin"
)

// logcheck uses types, and gets them where it is loaded as a shared object. As a
// plugin to be linked it asks for the syntax only, and would find less.
type logcheck struct{ register.LinterPlugin }

func (logcheck) GetLoadMode() string { return register.LoadModeTypesInfo }

func newLogcheck(settings any) (register.LinterPlugin, error) {
	plugin, err := gclplugin.New(settings)
	return logcheck{plugin}, err
}

func init() {
	// Replaces what gclplugin registered under this name.
	register.Plugin("logcheck", newLogcheck)
}

func main() {
	// Without a version, cached results are keyed by the hash of the program, and a plugin
	// that has changed runs again.
	info := commands.BuildInfo{GoVersion: runtime.Version(), Version: "(devel)", Commit: "none", Date: "none"}
	if err := commands.Execute(info); err != nil {
		fmt.Fprintln(os.Stderr, "golangci-lint:", err)
		os.Exit(exitcodes.Failure)
	}
}
