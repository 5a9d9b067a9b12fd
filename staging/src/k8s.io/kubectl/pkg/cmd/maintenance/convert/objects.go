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

package convert

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/node/maintenance"
)

// The versions to which objects are converted.
var (
	ours   = coordinationv1alpha1.SchemeGroupVersion.String()
	theirs = lifecycleVersion
)

// converter converts objects and commands, and reports what is not written as it was.
type converter struct {
	report
	to     string
	rename map[string]string
	// renamed are the keys of rename that were found.
	renamed sets.Set[string]
	objects []convertedObject
	// requests are EvictionRequests of 1.37: those of one pod become one object.
	requests []*foundRequest
}

// convertedObject is an object to write.
type convertedObject struct {
	source source
	object map[string]any
}

func newConverter(to string, rename map[string]string) *converter {
	return &converter{to: to, rename: rename, renamed: sets.New[string]()}
}

// conversion converts one kind. It adds what it writes to the converter.
type conversion struct {
	// to is the version that the kind can be converted to.
	to string
	// instead says what to do if that is not the version that the user wants.
	instead string
	convert func(c *converter, where source, object map[string]any)
}

const noMaintenanceIn137 = "Kubernetes 1.37 has no NodeMaintenance: nodes are drained there with \"kubectl drain\""

// conversions are the kinds that can be converted, besides pods and workloads.
var conversions = map[schema.GroupVersionKind]conversion{
	medik8sKind:    {to: ours, instead: noMaintenanceIn137, convert: (*converter).fromMedik8s},
	nvidiaKind:     {to: ours, instead: noMaintenanceIn137, convert: (*converter).fromNVIDIA},
	nvidiaConfig:   {to: ours, instead: noMaintenanceIn137, convert: (*converter).fromNVIDIAConfig},
	lifecycleAsked: {to: ours, instead: "it is already of that version: remove it", convert: (*converter).fromLifecycleRequest},
	lifecycleEvict: {to: ours, instead: "it is already of that version: remove it", convert: (*converter).fromLifecycleEviction},
	coordinationv1alpha1.SchemeGroupVersion.WithKind("EvictionRequest"): {
		to: theirs, instead: "it is already of that version: remove it, or use --to=" + theirs, convert: (*converter).toLifecycleRequests},
	coordinationv1alpha1.SchemeGroupVersion.WithKind("NodeMaintenance"): {
		to: theirs, instead: "it is already of that version: remove it", convert: (*converter).toNoMaintenance},
}

func (c *converter) addInput(in *input) {
	if in.isScript() {
		c.fail(source{file: in.name}, "", "is a script, and convert reads objects: write each drain command after \"--\", such as: kubectl maintenance convert -- kubectl drain NODE")
		return
	}
	documents, err := in.documents()
	if err != nil {
		c.errs = append(c.errs, err)
		return
	}
	if len(documents) == 0 {
		c.fail(source{file: in.name}, "", "has no object")
	}
	for _, document := range documents {
		c.addObject(source{file: in.name, document: document.number}, document.object)
	}
}

// addObject converts an object, or the items of a list.
func (c *converter) addObject(where source, object map[string]any) {
	version, kind, err := typeOf(object)
	if err != nil {
		c.fail(where, "", "%v", err)
		return
	}
	items, isList := object["items"].([]any)
	if isList && strings.HasSuffix(kind, "List") {
		c.addList(where, object, items, version, strings.TrimSuffix(kind, "List"))
		return
	}
	where.object += kind
	if name := nameOf(object); name != "" {
		where.object += "/" + name
	}
	c.convert(where, version.WithKind(kind), object)
}

// addList converts the items of a list. Items of a list of one kind, such as a PodList, may have no
// kind and version of their own.
func (c *converter) addList(where source, list map[string]any, items []any, version schema.GroupVersion, kind string) {
	for key := range list {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "items"}, key) {
			c.fail(where, key, "unknown field of a list: remove it")
		}
	}
	for i, item := range items {
		at := where
		at.object = fmt.Sprintf("items[%d] ", i)
		object, isObject := item.(map[string]any)
		if !isObject {
			c.fail(where, fmt.Sprintf("items[%d]", i), "is no object")
			continue
		}
		if _, hasKind := object["kind"]; !hasKind && kind != "" {
			object["apiVersion"], object["kind"] = version.String(), kind
		}
		c.addObject(at, object)
	}
}

func typeOf(object map[string]any) (schema.GroupVersion, string, error) {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	switch {
	case apiVersion == "":
		return schema.GroupVersion{}, "", errors.New("apiVersion: is missing: a Kubernetes object has an apiVersion and a kind")
	case kind == "":
		return schema.GroupVersion{}, "", errors.New("kind: is missing: a Kubernetes object has an apiVersion and a kind")
	}
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return version, kind, fmt.Errorf("apiVersion: %w", err)
	}
	return version, kind, nil
}

func nameOf(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return name
}

func (c *converter) convert(where source, kind schema.GroupVersionKind, object map[string]any) {
	if path, isPod := podSpecPaths[kind]; isPod {
		c.convertPod(where, kind, path, object)
		return
	}
	conversion, known := conversions[kind]
	switch {
	case !known:
		c.failUnknown(where, kind)
	case conversion.to != c.to:
		c.fail(where, "", "cannot be converted to %s: %s", c.to, conversion.instead)
	default:
		conversion.convert(c, where, object)
	}
}

// failUnknown names the versions of the kind, or of the group, that can be converted.
func (c *converter) failUnknown(where source, kind schema.GroupVersionKind) {
	var similar []string
	for other := range podSpecPaths {
		if other.Kind == kind.Kind {
			similar = append(similar, other.GroupVersion().String())
		}
	}
	for other := range conversions {
		if other.Kind == kind.Kind {
			similar = append(similar, other.GroupVersion().String())
		}
	}
	slices.Sort(similar)
	if len(similar) > 0 {
		c.fail(where, "apiVersion", "convert does not know %s, only %s: write it in that version, or remove it", kind.GroupVersion(), strings.Join(slices.Compact(similar), ", "))
		return
	}
	c.fail(where, "kind", "convert does not know %s of %s: remove it. The help of the command lists the kinds", kind.Kind, kind.GroupVersion())
}

// decode decodes an object, and returns errors that name unknown fields and those of a wrong type.
func (c *converter) decode(where source, object map[string]any, into any) bool {
	data, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrongType):
		found, _, _ := strings.Cut(wrongType.Value, " ")
		c.fail(where, wrongType.Field, "is of the type %s, must be of the type %s", cmp.Or(jsonTypes[found], found), describeType(wrongType.Type))
		return false
	case err != nil:
		c.fail(where, "", "%v", err)
		return false
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, into, true)
	if strict, isStrict := runtime.AsStrictDecodingError(err); isStrict {
		for _, unknown := range strict.Errors() {
			c.fail(where, "", "%v: correct its name, or remove it", unknown)
		}
		return false
	}
	if err != nil {
		c.fail(where, "", "%v", err)
	}
	return err == nil
}

// jsonTypes are words for types that have another name in errors of the JSON decoder.
var jsonTypes = map[string]string{"array": "list", "bool": "boolean"}

// describeType returns a word for a Go type that users of YAML know.
func describeType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return describeType(t.Elem())
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Slice:
		return "list"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32:
		return "integer"
	}
	return t.Kind().String()
}

// isBeingDeleted reports that nothing is written for an object that is being deleted.
func (c *converter) isBeingDeleted(where source, meta *metav1.ObjectMeta) bool {
	if meta.DeletionTimestamp == nil {
		return false
	}
	c.add(isLost, where, "metadata.deletionTimestamp", "the object is being deleted, so nothing is written for it")
	return true
}

// metadataOf returns the metadata to write: the name, the labels and the annotations.
func (c *converter) metadataOf(where source, meta *metav1.ObjectMeta) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{Name: meta.Name, GenerateName: meta.GenerateName, Namespace: meta.Namespace, Labels: meta.Labels}
	for key, value := range meta.Annotations {
		if key == corev1.LastAppliedConfigAnnotation {
			c.add(isIgnored, where, "metadata.annotations["+key+"]", "\"kubectl apply\" writes it")
			continue
		}
		metav1.SetMetaDataAnnotation(&kept, key, value)
	}
	if set := setByServer(meta); len(set) > 0 {
		c.add(isIgnored, where, "metadata", "the server sets %s", strings.Join(set, ", "))
	}
	if len(meta.Finalizers) > 0 {
		c.add(isIgnored, where, withValue("metadata.finalizers", strings.Join(meta.Finalizers, ",")), "controllers set those of their objects")
	}
	for i, owner := range meta.OwnerReferences {
		c.add(isLost, where, withValue(fmt.Sprintf("metadata.ownerReferences[%d]", i), owner.Kind+"/"+owner.Name), "the object is not deleted with that owner: delete it yourself")
	}
	return kept
}

// setByServer returns the fields of the metadata that only the server sets.
func setByServer(meta *metav1.ObjectMeta) []string {
	var set []string
	for _, f := range []struct {
		name  string
		isSet bool
	}{
		{"uid", meta.UID != ""},
		{"resourceVersion", meta.ResourceVersion != ""},
		{"generation", meta.Generation != 0},
		{"creationTimestamp", !meta.CreationTimestamp.IsZero()},
		{"deletionGracePeriodSeconds", meta.DeletionGracePeriodSeconds != nil},
		{"managedFields", len(meta.ManagedFields) > 0},
		{"selfLink", meta.SelfLink != ""},
	} {
		if f.isSet {
			set = append(set, f.name)
		}
	}
	return set
}

// write adds an object to the output, without its status.
func (c *converter) write(where source, object runtime.Object) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		c.fail(where, "", "%v", err)
		return
	}
	delete(content, "status")
	if metadata, isMap := content["metadata"].(map[string]any); isMap {
		delete(metadata, "creationTimestamp")
	}
	c.objects = append(c.objects, convertedObject{source: where, object: content})
}

// validMetadata reports errors that the server would return for the metadata of an object. The
// namespace may be that of the command which creates the object, and the server may make the name.
func (c *converter) validMetadata(where source, meta *metav1.ObjectMeta, namespaced bool) bool {
	checked := *meta
	if namespaced && checked.Namespace == "" {
		checked.Namespace = metav1.NamespaceDefault
	}
	if checked.Name == "" && checked.GenerateName != "" {
		checked.Name = "generated"
	}
	errs := apivalidation.ValidateObjectMeta(&checked, namespaced, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	for _, err := range errs {
		c.fail(where, "", "%v", err)
	}
	return len(errs) == 0
}

// maxReason is the maximum length of spec.reason, in characters.
const maxReason = 1024

// The limits of the selectors of a drain plan.
const (
	maxPlanRequirements = 10
	maxPlanValues       = 20
	maxPlanSelectors    = 8192
)

// writeMaintenance adds a maintenance to the output, if the server would accept it.
func (c *converter) writeMaintenance(where source, nm *coordinationv1alpha1.NodeMaintenance) {
	valid := c.validMetadata(where, &nm.ObjectMeta, false)
	for _, term := range nm.Spec.NodeSelector.NodeSelectorTerms {
		for _, requirement := range term.MatchFields {
			for _, name := range requirement.Values {
				for _, message := range apivalidation.NameIsDNSSubdomain(name, false) {
					c.fail(where, "", "%q is no name of a node: %s", name, message)
					valid = false
				}
			}
		}
	}
	if length := len([]rune(nm.Spec.Reason)); length > maxReason {
		c.fail(where, "spec.reason", "has %d characters, more than %d: shorten it", length, maxReason)
		valid = false
	}
	for _, entry := range nm.Spec.DrainPlan {
		if problem := sizeProblem(entry.PodSelector); problem != "" {
			c.fail(where, "", "the pod selector %s: use fewer or shorter labels, or remove it", problem)
			valid = false
		}
	}
	if valid {
		nm.APIVersion, nm.Kind = ours, "NodeMaintenance"
		c.write(where, nm)
	}
}

// sizeProblem says which limit of a drain plan a selector exceeds.
func sizeProblem(selector *metav1.LabelSelector) string {
	if count := len(selector.MatchLabels) + len(selector.MatchExpressions); count > maxPlanRequirements {
		return fmt.Sprintf("has %d requirements, more than %d", count, maxPlanRequirements)
	}
	for _, requirement := range selector.MatchExpressions {
		if count := len(requirement.Values); count > maxPlanValues {
			return fmt.Sprintf("has %d values of %s, more than %d", count, requirement.Key, maxPlanValues)
		}
	}
	if length := len(maintenance.SelectorKey(selector)); length > maxPlanSelectors {
		return fmt.Sprintf("has %d characters, more than %d", length, maxPlanSelectors)
	}
	return ""
}

// podsFirst returns a drain plan in which the selected pods leave before the others of the standard
// priorities.
func (c *converter) podsFirst(where source, path, text string) ([]corev1.DrainPlanEntry, bool) {
	selector, err := selectorOf(text)
	if err != nil {
		c.fail(where, path, "%v", err)
		return nil, false
	}
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return nil, true
	}
	first := maintenance.StandardPlan()[0]
	return []corev1.DrainPlanEntry{{PodType: first.PodType, PodPriority: first.PodPriority, PodSelector: selector}}, true
}

// finish returns the objects to write. No two of them may have the same name.
func (c *converter) finish() []map[string]any {
	c.mergeRequests()
	for _, name := range slices.Sorted(maps.Keys(c.rename)) {
		if !c.renamed.Has(name) {
			c.fail(source{}, "", "--rename=%s=%s: no interceptor or requester has the name %s", name, c.rename[name], name)
		}
	}
	var objects []map[string]any
	seen := map[string]source{}
	for _, converted := range c.objects {
		metadata, _ := converted.object["metadata"].(map[string]any)
		if name, _ := metadata["name"].(string); name != "" {
			key := fmt.Sprintf("%v %v %v/%s", converted.object["apiVersion"], converted.object["kind"], metadata["namespace"], name)
			if first, duplicate := seen[key]; duplicate {
				c.fail(converted.source, "metadata.name", "%q is also the name of the object from %s: rename one of them", name, first)
			}
			seen[key] = converted.source
		}
		objects = append(objects, converted.object)
	}
	return objects
}
