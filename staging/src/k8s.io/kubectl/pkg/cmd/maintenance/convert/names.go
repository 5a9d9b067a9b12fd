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
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// reservedIn137 are the domains whose names only components of Kubernetes may have in 1.37.
var reservedIn137 = []string{"k8s.io", "kubernetes.io"}

// isReservedIn137 reports whether only a component of Kubernetes may have the name of a requester
// or a responder.
func isReservedIn137(name string) bool {
	domain, _, _ := strings.Cut(name, "/")
	return slices.ContainsFunc(reservedIn137, func(reserved string) bool { return strings.HasSuffix("."+domain, "."+reserved) })
}

// keyOf returns the name that an interceptor or a requester has in 1.37, where a name is a domain and
// a key: the first label of a domain name becomes the key.
func (c *converter) keyOf(where source, path, name string) (string, bool) {
	if renamed, found := c.rename[name]; found {
		c.renamed.Insert(name)
		if errs := validation.IsDomainPrefixedKey(field.NewPath("name"), renamed); len(errs) > 0 {
			c.fail(where, withValue("--rename", name+"="+renamed), "%v", errs.ToAggregate())
			return "", false
		}
		c.reportRename(where, path, name, renamed)
		return renamed, true
	}
	if strings.Contains(name, "/") {
		return name, true
	}
	key, domain, _ := strings.Cut(name, ".")
	if !strings.Contains(domain, ".") {
		c.fail(where, withValue(path, name), "has no label before its domain that could be the key: choose a name, such as --rename=%s=%s/NAME", name, name)
		return "", false
	}
	converted := domain + "/" + key
	if errs := validation.IsDomainPrefixedKey(field.NewPath("name"), converted); len(errs) > 0 {
		c.fail(where, withValue(path, name), "%v: choose another name with --rename=%s=DOMAIN/NAME", errs.ToAggregate(), name)
		return "", false
	}
	c.reportRename(where, path, name, converted)
	return converted, true
}

func (c *converter) reportRename(where source, path, name, converted string) {
	c.add(isChanged, where, withValue(path, name), "is %s: the program must use that name", converted)
}

// nameHere returns the name that a requester or a responder of 1.37 has here: the same, unless the
// user wants another.
func (c *converter) nameHere(where source, path, name string) string {
	renamed, found := c.rename[name]
	if !found {
		return name
	}
	c.renamed.Insert(name)
	c.reportRename(where, path, name, renamed)
	return renamed
}

// compareResponders compares the names of responders of the same priority as 1.37 does: the labels
// of their domains, beginning with the top one, and then the keys.
func compareResponders(a, b string) int {
	domainA, keyA, _ := strings.Cut(a, "/")
	domainB, keyB, _ := strings.Cut(b, "/")
	labelsA, labelsB := strings.Split(domainA, "."), strings.Split(domainB, ".")
	slices.Reverse(labelsA)
	slices.Reverse(labelsB)
	if order := slices.Compare(labelsA, labelsB); order != 0 {
		return order
	}
	return strings.Compare(keyA, keyB)
}

// elementPath is the path of a field of an element of a list.
func elementPath(list string, index int, name string) string {
	return fmt.Sprintf("%s[%d].%s", list, index, name)
}
