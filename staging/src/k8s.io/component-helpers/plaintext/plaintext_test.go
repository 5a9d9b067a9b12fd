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

package plaintext

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestEscape(t *testing.T) {
	for _, tc := range []struct {
		name, text, escaped, line string
	}{
		{"plain", "a b", "a b", "a b"},
		{"lines and tabs", " a\n\tb \n", " a\n\tb \n", "a b"},
		{"a carriage return overwrites", "a\rb", `a\u000db`, "a b"},
		{"a form feed ends a line", "a\f\vb", `a\u000c\u000bb`, "a b"},
		{"C0", "a\x1b[2Jb\x00\x08\x7f", `a\u001b[2Jb\u0000\u0008\u007f`, `a\u001b[2Jb\u0000\u0008\u007f`},
		{"C1", "a\u009b2Jb\u0080\u009d", `a\u009b2Jb\u0080\u009d`, `a\u009b2Jb\u0080\u009d`},
		{"C1 that is a blank", "a\u0085b", `a\u0085b`, "a b"},
		{"separators of lines and paragraphs", "a\u2028b\u2029c", `a\u2028b\u2029c`, "a b c"},
		{"overrides", "a\u202eb\u202d\u202a\u202b\u202c", `a\u202eb\u202d\u202a\u202b\u202c`, `a\u202eb\u202d\u202a\u202b\u202c`},
		{"isolates and marks", "\u2066\u2067\u2068\u2069\u200e\u200f\u061c", `\u2066\u2067\u2068\u2069\u200e\u200f\u061c`, `\u2066\u2067\u2068\u2069\u200e\u200f\u061c`},
		{"invisible", "a\u200b\u2060\ufeff\u00adb", `a\u200b\u2060\ufeff\u00adb`, `a\u200b\u2060\ufeff\u00adb`},
		{"invisible, beyond 16 bits", "a\U000e0041", `a\udb40\udc41`, `a\udb40\udc41`},
		{"not UTF-8", "a\x9b\xff\xe2\x80", `a\x9b\xff\xe2\x80`, `a\x9b\xff\xe2\x80`},
		{"a replacement character", "a\ufffdb", "a\ufffdb", "a\ufffdb"},
		{"other scripts", "日本 עברית हिन्दी é", "日本 עברית हिन्दी é", "日本 עברית हिन्दी é"},
		{"blanks", "a\u00a0b\u3000c", "a\u00a0b\u3000c", "a b c"},
		{"joiners", "\U0001f469\u200d\U0001f4bb می\u200cخواهم", "\U0001f469\u200d\U0001f4bb می\u200cخواهم", "\U0001f469\u200d\U0001f4bb می\u200cخواهم"},
		{"escaped", `\u009b`, `\u009b`, `\u009b`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Escape(tc.text); got != tc.escaped {
				t.Errorf("escaped: %q, want %q", got, tc.escaped)
			}
			if got := Line(tc.text); got != tc.line {
				t.Errorf("in a line: %q, want %q", got, tc.line)
			}
		})
	}
}

// TestEscapeEachRune finds what slips through, whatever its category.
func TestEscapeEachRune(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		for _, got := range Escape(string(r)) {
			if got != '\n' && got != '\t' && (unicode.IsControl(got) || unicode.Is(unicode.Bidi_Control, got)) {
				t.Errorf("%U comes through", r)
			}
		}
		if got := Line(string(r)); strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("%U comes through in a line: %q", r, got)
		}
	}
}

// TestEscapeInJSON means the same to a program.
func TestEscapeInJSON(t *testing.T) {
	want := "a\u009b\u202e\U000e0041\x1b \\u009b"
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got string
	if err := json.Unmarshal([]byte(Escape(string(data))), &got); err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

func TestLines(t *testing.T) {
	if got := Lines([]string{"a\nb", "c\u009b"}); len(got) != 2 || got[0] != "a b" || got[1] != `c\u009b` {
		t.Errorf("%q", got)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 1, errors.New("broken") }

func TestWriter(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	// U+009B is split between two writes.
	for _, text := range []string{"a\x1b\n", "\xc2", "\x9b"} {
		if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	if want := "a\\u001b\n\\xc2\\x9b"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	if n, err := NewWriter(brokenWriter{}).Write([]byte("a")); n != 0 || err == nil {
		t.Errorf("a broken writer: %d, %v", n, err)
	}
}

func TestTruncate(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"shorter than the limit":           {"123456789", "123456789"},
		"as long as the limit":             {"1234567890", "1234567890"},
		"longer than the limit":            {"1234567890a", "1234567..."},
		"characters of two bytes that fit": {"äöüßé", "äöüßé"},
		"the limit in the middle of one":   {"äöüßéß", "äöü..."},
		"the limit at the end of one":      {"1äöüßéß", "1äöü..."},
		"not UTF-8":                        {"\xff23456789012", "234567..."},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Truncate(tc.text, 10); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
