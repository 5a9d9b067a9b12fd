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

package evictioninterceptor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const prefix = "interceptor.evictionrequest.coordination.k8s.io/priority_"

func TestParseRegistration(t *testing.T) {
	const name = "migrate.example.com"
	path := field.NewPath("metadata", "annotations")
	tests := map[string]struct {
		value      string
		want       Registration
		wantDetail string
	}{
		"lowest priority":                {value: "0", want: Registration{Name: name}},
		"highest priority":               {value: "100000", want: Registration{Name: name, Priority: 100000}},
		"below a controller":             {value: "9999", want: Registration{Name: name, Priority: 9999}},
		"as a controller, without role":  {value: "10000", want: Registration{Name: name, Priority: 10000}},
		"above a controller":             {value: "10001", want: Registration{Name: name, Priority: 10001}},
		"controller":                     {value: "10000/controller", want: Registration{Name: name, Priority: 10000, Role: "controller"}},
		"another role":                   {value: "11000/knows-the_app.v2", want: Registration{Name: name, Priority: 11000, Role: "knows-the_app.v2"}},
		"a similar role":                 {value: "5/controllers", want: Registration{Name: name, Priority: 5, Role: "controllers"}},
		"the longest role":               {value: "1/" + strings.Repeat("r", 63), want: Registration{Name: name, Priority: 1, Role: strings.Repeat("r", 63)}},
		"too low":                        {value: "-1", wantDetail: "from 0 to 100000"},
		"too high":                       {value: "100001", wantDetail: "from 0 to 100000"},
		"far too high":                   {value: "18446744073709551616", wantDetail: "from 0 to 100000"},
		"wraps around at 32 bits":        {value: "4294967296", wantDetail: "from 0 to 100000"},
		"empty":                          {value: "", wantDetail: `must be "<priority>" or "<priority>/<role>"`},
		"a sign":                         {value: "+1", wantDetail: "an integer from"},
		"a fraction":                     {value: "1.5", wantDetail: "an integer from"},
		"a space":                        {value: " 1", wantDetail: "an integer from"},
		"a role only":                    {value: "/fallback", wantDetail: "an integer from"},
		"a word":                         {value: "high", wantDetail: "an integer from"},
		"a slash without a role":         {value: "1/", wantDetail: "omit it and the slash"},
		"two roles":                      {value: "1/a/b", wantDetail: "the role must have"},
		"a role that is too long":        {value: "1/" + strings.Repeat("r", 64), wantDetail: "1 to 63"},
		"controller just below":          {value: "9999/controller", wantDetail: "the role controller requires the priority 10000"},
		"controller just above":          {value: "10001/controller", wantDetail: "the role controller requires the priority 10000"},
		"controller, lowest":             {value: "0/controller", wantDetail: "the role controller requires the priority 10000"},
		"controller with a bad priority": {value: "x/controller", wantDetail: "an integer from"},
	}
	for testName, test := range tests {
		t.Run(testName, func(t *testing.T) {
			got, errs := ParseRegistration(prefix+name, test.value, path)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("unexpected registration (-want +got):\n%s", diff)
			}
			var want field.ErrorList
			if test.wantDetail != "" {
				want = field.ErrorList{field.Invalid(path.Key(prefix+name), test.value, test.wantDetail)}
			}
			field.ErrorMatcher{}.ByType().ByField().ByValue().ByDetailSubstring().Test(t, want, errs)
		})
	}
}

func TestParseRegistrationChecksTheName(t *testing.T) {
	path := field.NewPath("metadata", "annotations")
	for name, wantDetail := range map[string]string{
		"deployment.apps.k8s.io":     "",
		"kubelet.k8s.io":             "",
		"k8s.io.example.com":         "",
		"migrate":                    "at least two segments",
		"Migrate.example.com":        "a lowercase RFC 1123 subdomain",
		"migrate.example.com.":       "may not end with a dot",
		"migrate.k8s.io":             "names that end in .k8s.io are reserved",
		"k8s.io":                     "names that end in .k8s.io are reserved",
		"imperative-eviction.k8s.io": "remove it",
	} {
		t.Run(name, func(t *testing.T) {
			var want field.ErrorList
			if wantDetail != "" {
				want = field.ErrorList{field.Invalid(path.Key(prefix+name), name, wantDetail)}
			}
			_, errs := ParseRegistration(prefix+name, "1", path)
			field.ErrorMatcher{}.ByType().ByField().ByValue().ByDetailSubstring().Test(t, want, errs)
		})
	}
	_, errs := ParseRegistration(prefix, "1", path)
	field.ErrorMatcher{}.ByType().ByField().Test(t, field.ErrorList{field.Required(path.Key(prefix), "")}, errs)
}

func TestRegisteredName(t *testing.T) {
	for key, want := range map[string]string{
		prefix + "a.example.com": "a.example.com",
		prefix:                   "",
		"interceptor.evictionrequest.coordination.k8s.io/note_a.example.com": "not one",
		"interceptor.evictionrequest.example.com/priority_a.example.com":     "not one",
		"a.example.com": "not one",
	} {
		name, registers := RegisteredName(key)
		if registers != (want != "not one") || registers && name != want {
			t.Errorf("RegisteredName(%q) = %q, %v; want %q", key, name, registers, want)
		}
	}
}
