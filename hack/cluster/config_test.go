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
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestSortSettings(t *testing.T) {
	cases := map[string]struct {
		list    string
		want    string
		wantErr bool
	}{
		"empty":                {list: "", want: ""},
		"order does not count": {list: "B=false,A=true", want: "A=true,B=false"},
		"spaces and commas":    {list: " A=true ,, ", want: "A=true"},
		"API version":          {list: "coordination.k8s.io/v1alpha1=true", want: "coordination.k8s.io/v1alpha1=true"},
		"no value":             {list: "A", wantErr: true},
		"no name":              {list: "=true", wantErr: true},
		"value not boolean":    {list: "A=maybe", wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := sortSettings("--gates", tc.list)
			if got != tc.want || (err != nil) != tc.wantErr {
				t.Errorf("sortSettings(%q) = %q, %v; want %q, error %v", tc.list, got, err, tc.want, tc.wantErr)
			}
		})
	}
}

// Whoever adds a gate adds patches that name it.
func TestDefaultGates(t *testing.T) {
	root := filepath.Join("..", "..")
	var named []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		// What is generated and the repository of git hold no patch of ours.
		if entry.IsDir() && path != root && (entry.Name() == "_output" || strings.HasPrefix(entry.Name(), ".")) {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".patch" {
			return nil
		}
		named = append(named, gatesOfPatch(t, path)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(named)
	if got, want := defaultGates, strings.Join(slices.Compact(named), ","); got != want {
		t.Errorf("defaultGates is %q, the patches name %q", got, want)
	}
}

// gatesOfPatch returns the gates in the header of a patch, as settings.
func gatesOfPatch(t *testing.T, path string) []string {
	t.Helper()
	patch, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var gates []string
	for line := range strings.Lines(string(patch)) {
		list, isHeader := strings.CutPrefix(line, "Gate: ")
		if !isHeader {
			continue
		}
		for _, gate := range strings.Split(list, ",") {
			if gate = strings.TrimSpace(gate); gate != "none" {
				gates = append(gates, gate+"=true")
			}
		}
		break // The rest is the patch.
	}
	return gates
}

func inBin(component string) string { return "/bin/" + component }

// The names are those of kwokctl's file format, which ignores what it does not
// know: a wrong name would silently give a cluster without RBAC, or one that
// the network can reach, or one whose programs were downloaded.
func TestKwokctlConfig(t *testing.T) {
	opts := options{gates: "A=true", runtimeConfig: "g/v1=true"}
	p := ports{Etcd: 1, EtcdPeer: 2, APIServer: 3, ControllerManager: 4, Scheduler: 5, Kwok: 6}
	data, err := json.Marshal(kwokctlConfig(opts, p, inBin, "/stages").Options)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"runtime":"binary","bindAddress":"127.0.0.1","securePort":true,"kubeAuthorization":true,"kubeAdmission":true,` +
		`"kubeFeatureGates":"A=true","kubeRuntimeConfig":"g/v1=true",` +
		`"etcdPort":1,"etcdPeerPort":2,"kubeApiserverPort":3,"kubeControllerManagerPort":4,"kubeSchedulerPort":5,"kwokControllerPort":6,` +
		`"etcdBinary":"/bin/etcd","kubeApiserverBinary":"/bin/kube-apiserver","kubeControllerManagerBinary":"/bin/kube-controller-manager",` +
		`"kubeSchedulerBinary":"/bin/kube-scheduler","kwokControllerBinary":"/bin/kwok-controller","kubectlBinary":"/bin/kubectl"}`
	if string(data) != want {
		t.Errorf("options of kwokctl:\n got %s\nwant %s", data, want)
	}
}

func TestComponentPatches(t *testing.T) {
	patches := kwokctlConfig(options{}, ports{}, inBin, "/stages").ComponentsPatches
	for _, patch := range patches {
		if !slices.Contains(components, patch.Name) {
			t.Errorf("patch for %q, which is no component", patch.Name)
		}
	}
	for component, want := range map[string]extraArg{
		// Without this all controllers are administrators and RBAC is not tested.
		"kube-controller-manager": {Key: "use-service-account-credentials", Value: "true"},
		// Were it to override, the default stages would be gone.
		"kwok-controller": {Key: "config", Value: "/stages"},
	} {
		i := slices.IndexFunc(patches, func(p componentPatch) bool { return p.Name == component })
		if i < 0 {
			t.Errorf("no patch for %s", component)
			continue
		}
		if !slices.Contains(patches[i].ExtraArgs, want) {
			t.Errorf("%s has %v, want %v among them", component, patches[i].ExtraArgs, want)
		}
	}
}

func TestArgList(t *testing.T) {
	var args argList
	for _, bad := range []string{"", "v=2", "kubelet:v=2", "etcd:v", "etcd:=2", "etcd:--v=2"} {
		if err := args.Set(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	for _, good := range []string{"kube-apiserver:audit-log-path=/a=b:c", "kube-controller-manager:kube-api-qps=20"} {
		if err := args.Set(good); err != nil {
			t.Errorf("%q was refused: %v", good, err)
		}
	}
	patches := kwokctlConfig(options{args: args}, ports{}, inBin, "/stages").ComponentsPatches
	// After our own settings, or those would win.
	want := []componentPatch{
		{Name: "kube-apiserver", ExtraArgs: []extraArg{{Key: "audit-log-path", Value: "/a=b:c"}}},
		{Name: "kube-controller-manager", ExtraArgs: []extraArg{{Key: "kube-api-qps", Value: "20"}}},
	}
	if got := patches[len(patches)-2:]; !reflect.DeepEqual(got, want) {
		t.Errorf("patches end with %v, want %v", got, want)
	}
}

func TestChoosePorts(t *testing.T) {
	p, err := choosePorts()
	if err != nil {
		t.Fatal(err)
	}
	all := []int{p.Etcd, p.EtcdPeer, p.APIServer, p.ControllerManager, p.Scheduler, p.Kwok}
	seen := map[int]bool{}
	for _, port := range all {
		if port == 0 || seen[port] {
			t.Errorf("ports %v: want six different ones", all)
		}
		seen[port] = true
		// Closed again, or the components could not have it.
		listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			t.Errorf("port %d is not free: %v", port, err)
			continue
		}
		listener.Close()
	}
}
