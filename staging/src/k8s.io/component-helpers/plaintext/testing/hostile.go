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

// Package testing has objects whose authors want to take over a terminal.
package testing

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Forged is what a line begins with that a hostile text has begun by itself.
const Forged = "FORGED"

// Text clears the screen, colors it, sets its title, overwrites the line, begins another
// one, reorders and hides what follows, and is no valid UTF-8.
const Text = "\x1b[2J\u009b31m\u009d0;title\x07\b\r\n" + Forged + "\n\t" + Forged + "\f" + Forged + "\u2028\u0085\u202e\u2066\u200f\u200b\U000e0041\x9b\xff"

// Poison appends Text to about half of the strings of an object, which is a pointer. The
// same seed chooses the same strings.
func Poison(seed uint64, object any) {
	poison(rand.New(rand.NewPCG(seed, 0)), reflect.ValueOf(object).Elem())
}

func poison(random *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() && random.IntN(2) == 0 {
			v.SetString(v.String() + Text)
		}
	case reflect.Pointer, reflect.Interface:
		if v.Kind() == reflect.Pointer && !v.IsNil() {
			poison(random, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			poison(random, v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			poison(random, v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			poison(random, value)
			v.SetMapIndex(key, value)
		}
	}
}

// Check fails the test unless the output is safe to print: it has no control and no bidi
// character but line ends and tabs, and no line that a hostile text has begun.
func Check(t *testing.T, what, output string) {
	t.Helper()
	if !utf8.ValidString(output) {
		t.Errorf("%s: is no valid UTF-8: %q", what, output)
	}
	for _, r := range output {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			t.Errorf("%s: %U reaches the terminal: %q", what, r, output)
			break
		}
	}
	for _, line := range strings.Split(output, "\n") {
		if strings.HasPrefix(line, Forged) {
			t.Errorf("%s: a line is forged: %q", what, output)
		}
	}
}
