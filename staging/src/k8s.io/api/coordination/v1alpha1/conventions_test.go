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

package v1alpha1

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The rules below are those of the API conventions that kube-api-linter checks in
// upstream's configuration (hack/golangci.yaml), by its names for them, and the
// uniqueness of names and tags on the wire, which nothing else checks.
var fieldRules = map[string]func(apiField) string{
	"commentstart":       checkComment,
	"conditions":         checkConditions,
	"conflictingmarkers": checkConflicts,
	"dependenttags":      checkUnionMember,
	"duplicatemarkers":   checkDuplicates,
	"jsontags":           checkJSON,
	"nonpointerstructs":  checkStruct,
	"nullable":           checkNullable,
	"optionalorrequired": checkOptionalOrRequired,
	"optionalfields":     checkOmitEmpty,
	"ssatags":            checkListType,
	"types":              checkType,
	"wire":               checkProtobuf,
}

// exceptions are broken rules, by rule and field, with the reason why that stays so.
var exceptions = map[string]string{
	"types: StageStatus.StartTimestamp":                    "the name is that of KEP-4212",
	"nonpointerstructs: NodeMaintenance.Status":            "a status is optional in every object, and its counters say 0",
	"nonpointerstructs: NodeMaintenanceBudget.Status":      "a status is optional in every object, and its counters say 0",
	"nonpointerstructs: NodeMaintenanceStatus.DrainStatus": "KEP-4212 has a struct here, which is there before the drain, with counters that say 0",
}

// apiField is a field of an API type as it is written.
type apiField struct {
	typeName         string
	name, goType     string
	comment          string
	markers          []string
	json, protobuf   string
	tag              reflect.StructTag
	structs          map[string]*ast.StructType
	siblings         *ast.StructType
	inList, embedded bool
}

func (f apiField) has(marker string) bool {
	return slices.ContainsFunc(f.markers, func(m string) bool { return m == marker || strings.HasPrefix(m, marker+"=") })
}

func (f apiField) isList() bool { return strings.HasPrefix(f.goType, "[]") && f.goType != "[]byte" }

func (f apiField) jsonName() string { return strings.Split(f.json, ",")[0] }

func checkComment(f apiField) string {
	if f.embedded && f.jsonName() == "" || f.inList || strings.HasPrefix(f.comment, f.jsonName()+" ") {
		return ""
	}
	return "the comment must start with " + f.jsonName()
}

func checkConditions(f apiField) string {
	if f.name != "Conditions" {
		return ""
	}
	if f.goType != "[]metav1.Condition" {
		return "must be []metav1.Condition"
	}
	for _, marker := range []string{"optional", "patchMergeKey=type", "patchStrategy=merge", "listType=map", "listMapKey=type"} {
		if !slices.Contains(f.markers, marker) {
			return "must have the marker +" + marker
		}
	}
	if f.tag.Get("patchStrategy") != "merge" || f.tag.Get("patchMergeKey") != "type" {
		return "must be merged by type in a patch, also by its tags"
	}
	return ""
}

func checkConflicts(f apiField) string {
	switch optional, required := f.has("optional") || f.has("k8s:optional"), f.has("required") || f.has("k8s:required"); {
	case optional && required:
		return "is marked both optional and required"
	case required && f.has("default"):
		return "is required and has a default"
	}
	return ""
}

func checkUnionMember(f apiField) string {
	if f.has("k8s:unionMember") && !f.has("k8s:optional") {
		return "is a member of a union, and not marked +k8s:optional"
	}
	return ""
}

func checkDuplicates(f apiField) string {
	for i, marker := range f.markers {
		if slices.Contains(f.markers[:i], marker) {
			return "has the marker +" + marker + " twice"
		}
	}
	return ""
}

var camelCase = regexp.MustCompile("^[a-z][a-z0-9]*([A-Z][a-z0-9]*)*$")

func checkJSON(f apiField) string {
	inline := f.embedded && f.json == ",inline"
	if !inline && !camelCase.MatchString(f.jsonName()) {
		return fmt.Sprintf("needs a JSON name in camel case, has %q", f.json)
	}
	return ""
}

// checkStruct leaves unions alone: what is required of one is a member.
func checkStruct(f apiField) string {
	fields, found := f.structs[f.goType]
	if !found || isUnion(fields) {
		return ""
	}
	hasRequired := slices.ContainsFunc(fields.Fields.List, func(inner *ast.Field) bool {
		return slices.Contains(markersOf(inner.Doc), "required")
	})
	if hasRequired != f.has("required") {
		return fmt.Sprintf("holds a %s, which has required fields: %t, but is itself required: %t", f.goType, hasRequired, !hasRequired)
	}
	return ""
}

func isUnion(fields *ast.StructType) bool {
	return slices.ContainsFunc(fields.Fields.List, func(inner *ast.Field) bool {
		return slices.Contains(markersOf(inner.Doc), "k8s:unionMember")
	})
}

func checkNullable(f apiField) string {
	if f.has("nullable") {
		return "must not be nullable"
	}
	return ""
}

func checkOptionalOrRequired(f apiField) string {
	if f.json != ",inline" && !f.inList && f.has("optional") == f.has("required") {
		return "needs one of the markers +optional and +required"
	}
	return ""
}

func checkOmitEmpty(f apiField) string {
	if f.has("optional") != strings.HasSuffix(f.json, ",omitempty") {
		return "must have omitempty if it is optional, and only then"
	}
	return ""
}

func checkListType(f apiField) string {
	switch {
	case !f.isList() || f.inList:
		return ""
	case !f.has("listType"):
		return "is a list and needs the marker +listType"
	case slices.Contains(f.markers, "listType=map") && !f.has("listMapKey"):
		return "is a list map and needs the marker +listMapKey"
	}
	return ""
}

func checkType(f apiField) string {
	base := strings.TrimLeft(f.goType, "[]*")
	switch {
	case strings.HasPrefix(base, "map["):
		return "must not be a map"
	case base == "metav1.Duration" || base == "time.Duration":
		return "must not be a duration: use an integer and name the unit"
	case slices.Contains([]string{"int", "int8", "int16", "uint", "uint8", "uint16", "uint32", "uint64", "float32", "float64"}, base):
		return "must be int32 or int64"
	case strings.Contains(strings.ToLower(f.name), "timestamp"):
		return "is named timestamp: use time"
	}
	return ""
}

// checkProtobuf finds names and numbers that another field of the type has already.
func checkProtobuf(f apiField) string {
	if f.json == ",inline" {
		return ""
	}
	parts := strings.Split(f.protobuf, ",")
	if len(parts) < 4 || parts[3] != "name="+f.jsonName() && !f.embedded {
		return fmt.Sprintf("needs a protobuf tag with its JSON name, has %q", f.protobuf)
	}
	for _, sibling := range f.siblings.Fields.List {
		other := tagOf(sibling)
		otherParts := strings.Split(other.Get("protobuf"), ",")
		if fieldName(sibling) == f.name || len(otherParts) < 2 {
			continue
		}
		if otherParts[1] == parts[1] || strings.Split(other.Get("json"), ",")[0] == f.jsonName() {
			return fmt.Sprintf("has the protobuf number or JSON name of %s", fieldName(sibling))
		}
	}
	return ""
}

// apiFields returns the fields of the struct types in a file that include selects.
func apiFields(file *ast.File, include func(typeName, field string) bool) []apiField {
	structs := map[string]*ast.StructType{}
	ast.Inspect(file, func(node ast.Node) bool {
		if spec, ok := node.(*ast.TypeSpec); ok {
			if fields, ok := spec.Type.(*ast.StructType); ok {
				structs[spec.Name.Name] = fields
			}
		}
		return true
	})
	var result []apiField
	for typeName, fields := range structs {
		for _, field := range fields.Fields.List {
			if !include(typeName, fieldName(field)) {
				continue
			}
			tag := tagOf(field)
			result = append(result, apiField{
				typeName: typeName, name: fieldName(field), goType: expression(field.Type), comment: field.Doc.Text(), markers: markersOf(field.Doc),
				json: tag.Get("json"), protobuf: tag.Get("protobuf"), tag: tag, structs: structs, siblings: fields,
				inList: strings.HasSuffix(typeName, "List"), embedded: len(field.Names) == 0,
			})
		}
	}
	return result
}

func tagOf(field *ast.Field) reflect.StructTag {
	if field.Tag == nil {
		return ""
	}
	return reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
}

func fieldName(field *ast.Field) string {
	if len(field.Names) == 0 {
		return expression(field.Type)
	}
	return field.Names[0].Name
}

func expression(node ast.Expr) string {
	switch node := node.(type) {
	case *ast.ArrayType:
		return "[]" + expression(node.Elt)
	case *ast.StarExpr:
		return "*" + expression(node.X)
	case *ast.MapType:
		return "map[" + expression(node.Key) + "]" + expression(node.Value)
	case *ast.SelectorExpr:
		return expression(node.X) + "." + node.Sel.Name
	case *ast.Ident:
		return node.Name
	}
	return fmt.Sprintf("%T", node)
}

func markersOf(doc *ast.CommentGroup) []string {
	var markers []string
	if doc == nil {
		return nil
	}
	for _, line := range doc.List {
		if marker, found := strings.CutPrefix(line.Text, "// +"); found {
			markers = append(markers, marker)
		}
	}
	return markers
}

func parse(t *testing.T, path string, source any) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestConventions checks this version and what the fork adds to core/v1.
func TestConventions(t *testing.T) {
	fields := apiFields(parse(t, "types.go", nil), func(string, string) bool { return true })
	core := apiFields(parse(t, "../../core/v1/types.go", nil), func(typeName, field string) bool {
		return slices.Contains([]string{"EvictionInterceptor", "DrainPlanEntry", "MaintenanceStatus", "MaintenanceAdmission"}, typeName) ||
			typeName == "PodSpec" && field == "EvictionInterceptors" || typeName == "NodeStatus" && field == "MaintenanceStatus"
	})
	if len(fields) < 137 || len(core) != 27 {
		t.Fatalf("found %d fields and %d in core/v1: the test has lost them", len(fields), len(core))
	}
	found := map[string]bool{}
	for _, field := range append(fields, core...) {
		for rule, check := range fieldRules {
			problem, key := check(field), fmt.Sprintf("%s: %s.%s", rule, field.typeName, field.name)
			if found[key] = problem != ""; problem != "" && exceptions[key] == "" {
				t.Errorf("%s %s", key, problem)
			}
		}
	}
	for key := range exceptions {
		if !found[key] {
			t.Errorf("%s is an exception, and needs none", key)
		}
	}
}

// TestConventionsFindFaults has one fault per rule: a rule that finds nothing is none.
func TestConventionsFindFaults(t *testing.T) {
	const good = "// good is good.\n// +required\nGood string `json:\"good\" protobuf:\"bytes,1,opt,name=good\"`\n"
	faults := map[string][]string{
		"commentstart":       {"// The name.\n// +optional\nName string `json:\"name,omitempty\" protobuf:\"bytes,2,opt,name=name\"`"},
		"conditions":         {"// conditions are.\n// +optional\n// +listType=atomic\nConditions []metav1.Condition `json:\"conditions,omitempty\" protobuf:\"bytes,2,rep,name=conditions\"`", "// conditions are.\n// +optional\n// +listType=atomic\nConditions []string `json:\"conditions,omitempty\" protobuf:\"bytes,2,rep,name=conditions\"`"},
		"conflictingmarkers": {"// a is.\n// +optional\n// +k8s:required\nA string `json:\"a,omitempty\" protobuf:\"bytes,2,opt,name=a\"`", "// a is.\n// +required\n// +default=1\nA string `json:\"a\" protobuf:\"bytes,2,opt,name=a\"`"},
		"dependenttags":      {"// a is.\n// +optional\n// +k8s:unionMember\nA *string `json:\"a,omitempty\" protobuf:\"bytes,2,opt,name=a\"`"},
		"duplicatemarkers":   {"// a is.\n// +optional\n// +optional\nA string `json:\"a,omitempty\" protobuf:\"bytes,2,opt,name=a\"`"},
		"jsontags":           {"// A_b is.\n// +optional\nA string `json:\"A_b,omitempty\" protobuf:\"bytes,2,opt,name=A_b\"`"},
		"nonpointerstructs":  {"// a is.\n// +optional\nA T `json:\"a,omitempty\" protobuf:\"bytes,2,opt,name=a\"`"},
		"nullable":           {"// a is.\n// +optional\n// +nullable\nA string `json:\"a,omitempty\" protobuf:\"bytes,2,opt,name=a\"`"},
		"optionalorrequired": {"// a is.\nA string `json:\"a\" protobuf:\"bytes,2,opt,name=a\"`"},
		"optionalfields":     {"// a is.\n// +optional\nA string `json:\"a\" protobuf:\"bytes,2,opt,name=a\"`"},
		"ssatags":            {"// a is.\n// +optional\nA []string `json:\"a,omitempty\" protobuf:\"bytes,2,rep,name=a\"`", "// a is.\n// +optional\n// +listType=map\nA []string `json:\"a,omitempty\" protobuf:\"bytes,2,rep,name=a\"`"},
		"types":              {"// a is.\n// +optional\nA map[string]string `json:\"a,omitempty\" protobuf:\"bytes,2,rep,name=a\"`", "// a is.\n// +optional\nA *int `json:\"a,omitempty\" protobuf:\"bytes,2,opt,name=a\"`", "// a is.\n// +optional\nA metav1.Duration `json:\"a,omitempty\" protobuf:\"bytes,2,opt,name=a\"`", "// timestamp is.\n// +optional\nTimestamp metav1.Time `json:\"timestamp,omitempty\" protobuf:\"bytes,2,opt,name=timestamp\"`"},
		"wire":               {"// a is.\n// +optional\nA string `json:\"a,omitempty\" protobuf:\"bytes,1,opt,name=a\"`", "// good is.\n// +optional\nA string `json:\"good,omitempty\" protobuf:\"bytes,2,opt,name=good\"`", "// a is.\n// +optional\nA string `json:\"a,omitempty\"`"},
	}
	for rule := range fieldRules {
		if len(faults[rule]) == 0 {
			t.Errorf("no fault for the rule %s", rule)
		}
	}
	for rule, sources := range faults {
		for _, source := range sources {
			file := parse(t, "", "package p\ntype T struct {\n"+good+source+"\n}\n")
			found := map[string]bool{}
			for _, field := range apiFields(file, func(_, field string) bool { return field != "Good" }) {
				for other, check := range fieldRules {
					found[other] = found[other] || check(field) != ""
				}
			}
			for other, reported := range found {
				if reported != (other == rule) {
					t.Errorf("%s: reported by %s: %t, in\n%s", rule, other, reported, source)
				}
			}
		}
	}
}
