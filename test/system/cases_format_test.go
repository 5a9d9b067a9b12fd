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

package system

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const casesDir = "testdata/cases"

//go:embed testdata/cases
var caseFiles embed.FS

// publicCase is the first document of a file in testdata/cases. The others are objects. Of workloads, the file
// says what matters: the name is the default of the label "app" of their pods and of their selector, the only
// container pauses, and a pod takes a moment to become ready and to end, so that gaps are seen.
//
// In commands and objects, $CASE is the name of the file without its suffix, $NODE the first node of the case,
// and $OTHER the second one. In an object, $UID is the UID of the object before it.
type publicCase struct {
	// Reports are issues and pull requests, such as kubernetes/kubernetes#48307, and Title what they are about.
	Reports []string
	Title   string
	// Nodes is how many nodes the case has, 2 by default. Its pods run on these nodes only: on the first one
	// at the beginning, unless the case is Open, on all of them afterwards.
	Nodes int
	Open  bool
	// Stock is the pristine base with its kubectl, Ours the fork.
	Stock, Ours way

	name    string
	objects []*unstructured.Unstructured
}

// way is how one of the two drains the first node.
type way struct {
	// Run are commands of kubectl. All but the last one must succeed, or begin with an exclamation mark. By default
	// the first node is drained.
	Run []string
	// Input is the standard input of each command, such as the manifest for "apply -f -".
	Input string
	// Does is what comes of it, for people, and Want what is checked.
	Does string
	Want expectation
}

// expectation is what must be so after the commands. Fields that are not set are not checked, but Exit is.
type expectation struct {
	// Exit is the exit code of the last command.
	Exit int
	// Says are texts that the commands print, and Hides those that they do not.
	Says, Hides []string
	// Lowest is, by app, the lowest number of ready pods from the first command on.
	Lowest map[string]int
	// Ready is, by app, how many pods are ready in the end.
	Ready map[string]int
	// Left is, by app, how many pods are on the first node in the end, also those that terminate.
	Left map[string]int
	// Unschedulable is whether the first node is, in the end.
	Unschedulable *bool
}

const (
	stockDrain = "drain $NODE --ignore-daemonsets --timeout=12s"
	ourDrain   = "maintenance start --name=$CASE $NODE --wait --timeout=40s"

	uidVariable = "$UID"

	// casePodDelay is how long a pod takes to become ready and to end: see the annotations of newSlowPod.
	casePodDelay = 1500 * time.Millisecond
)

// reportPattern matches issues and pull requests.
var reportPattern = regexp.MustCompile(`^[\w.-]+/[\w.-]+#\d+$`)

// parseCase reads a file of a case.
func parseCase(name string, data []byte) (*publicCase, error) {
	c := &publicCase{name: name, Nodes: 2}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for i := 0; ; i++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if i == 0 {
			if err := yaml.UnmarshalStrict(document, c); err != nil {
				return nil, err
			}
			continue
		}
		object := &unstructured.Unstructured{}
		text, err := yaml.YAMLToJSON([]byte(c.fill(string(document))))
		if err == nil {
			err = object.UnmarshalJSON(text)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i, err)
		}
		if err := c.complete(object); err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		c.objects = append(c.objects, object)
	}
	return c, c.check()
}

// check says what a file lacks.
func (c *publicCase) check() error {
	if bad := slices.IndexFunc(c.Reports, func(report string) bool { return !reportPattern.MatchString(report) }); bad >= 0 {
		return fmt.Errorf("reports has %q, must be an issue such as kubernetes/kubernetes#48307", c.Reports[bad])
	}
	switch {
	case len(c.Reports) == 0:
		return errors.New("reports is missing")
	case c.Title == "":
		return errors.New("title is missing")
	case len(c.objects) == 0:
		return errors.New("it has no objects")
	}
	for which, w := range map[string]*way{"stock": &c.Stock, "ours": &c.Ours} {
		if w.Does == "" {
			return fmt.Errorf("%s.does is missing", which)
		}
		if want := w.Want; len(want.Says)+len(want.Hides)+len(want.Lowest)+len(want.Ready)+len(want.Left) == 0 && want.Unschedulable == nil {
			return fmt.Errorf("%s.want checks an exit code only", which)
		}
	}
	return nil
}

func (c *publicCase) nodes() []string {
	var names []string
	for i := range c.Nodes {
		names = append(names, fmt.Sprintf("%s-%d", c.name, i))
	}
	return names
}

// fill replaces the variables in a text.
func (c *publicCase) fill(text string) string {
	return strings.NewReplacer("$CASE", c.name, "$NODE", c.name+"-0", "$OTHER", c.name+"-1").Replace(text)
}

// caseCommand is a command of kubectl.
type caseCommand struct {
	args    []string
	mayFail bool
}

// commands returns the commands of one way.
func (c *publicCase) commands(w *way, byDefault string) []caseCommand {
	commands := w.Run
	if len(commands) == 0 {
		commands = []string{byDefault}
	}
	var all []caseCommand
	for _, command := range commands {
		text, mayFail := strings.CutPrefix(c.fill(command), "!")
		all = append(all, caseCommand{args: strings.Fields(text), mayFail: mayFail})
	}
	return all
}

// templates are where the pods of workloads are described.
var templates = map[string][]string{
	"Pod": nil, "Deployment": {"spec", "template"}, "ReplicaSet": {"spec", "template"}, "ReplicationController": {"spec", "template"},
	"StatefulSet": {"spec", "template"}, "DaemonSet": {"spec", "template"}, "Job": {"spec", "template"},
}

// complete adds to an object what the file does not say.
func (c *publicCase) complete(object *unstructured.Unstructured) error {
	app := object.GetName()
	at, found := templates[object.GetKind()]
	switch kind := object.GetKind(); {
	case kind == "PodDisruptionBudget" || kind == "Service":
		return addSelector(object, app)
	case !found:
		return nil
	case kind == "Deployment" || kind == "ReplicaSet" || kind == "StatefulSet" || kind == "DaemonSet" || kind == "ReplicationController":
		if err := addSelector(object, app); err != nil {
			return err
		}
	}
	pod, err := nested(object.Object, at...)
	if err != nil {
		return err
	}
	return c.completePod(pod, app)
}

// addSelector selects the pods of the app, unless the file says what is selected.
func addSelector(object *unstructured.Unstructured, app string) error {
	spec, err := nested(object.Object, "spec")
	if err != nil {
		return err
	}
	labels := map[string]any{appLabel: app}
	switch object.GetKind() {
	case "Service", "ReplicationController":
		setDefault(spec, "selector", labels)
	default:
		setDefault(spec, "selector", map[string]any{"matchLabels": labels})
	}
	return nil
}

// completePod adds to a pod, or to a template of pods, what the file does not say.
func (c *publicCase) completePod(pod map[string]any, app string) error {
	labels, err := nested(pod, "metadata", "labels")
	if err != nil {
		return err
	}
	setDefault(labels, appLabel, app)
	annotations, err := nested(pod, "metadata", "annotations")
	if err != nil {
		return err
	}
	for key, value := range newSlowPod(app, casePodDelay, casePodDelay).Annotations {
		setDefault(annotations, key, value)
	}
	spec, err := nested(pod, "spec")
	if err != nil {
		return err
	}
	setDefault(spec, "containers", []any{map[string]any{"name": "main", "image": "registry.k8s.io/pause"}})
	if _, bound := spec["nodeName"]; !bound {
		setDefault(spec, "nodeSelector", map[string]any{caseLabel: c.name})
	}
	return nil
}

// nested returns a map in an object, which is created if it is missing.
func nested(object map[string]any, path ...string) (map[string]any, error) {
	for _, field := range path {
		if object[field] == nil {
			object[field] = map[string]any{}
		}
		next, ok := object[field].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s is no map", field)
		}
		object = next
	}
	return object, nil
}

func setDefault(object map[string]any, field string, value any) {
	if _, found := object[field]; !found {
		object[field] = value
	}
}

// pods returns how many pods the objects have at first.
func (c *publicCase) pods() int {
	count := 0
	for _, object := range c.objects {
		switch kind := object.GetKind(); {
		case kind == "DaemonSet":
			count += c.Nodes
		case kind == "Pod" || kind == "Job":
			count++
		case slices.Contains([]string{"Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"}, kind):
			replicas, found, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
			if !found {
				replicas = 1
			}
			count += int(replicas)
		}
	}
	return count
}

// readCases reads the files of the cases whose names match.
func readCases(names *regexp.Regexp) ([]*publicCase, error) {
	entries, err := caseFiles.ReadDir(casesDir)
	if err != nil {
		return nil, err
	}
	var cases []*publicCase
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Name(), ".yaml")
		if !names.MatchString(name) {
			continue
		}
		data, err := caseFiles.ReadFile(path.Join(casesDir, entry.Name()))
		if err != nil {
			return nil, err
		}
		c, err := parseCase(name, data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		cases = append(cases, c)
	}
	if len(cases) == 0 {
		return nil, fmt.Errorf("no case has a name that matches %s", names)
	}
	return cases, nil
}
