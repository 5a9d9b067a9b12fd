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

// Package steps is for programs that do one thing after another and cannot go on when one fails, as a
// test does: the step ends the run by a panic, which Attempt turns into an error. Each goroutine
// begins with Attempt.
package steps

import "fmt"

// failure is why a run cannot go on.
type failure struct{ err error }

// Check ends the run if a step has failed, which has done what.
func Check(err error, what ...any) {
	if err != nil && len(what) > 0 {
		err = fmt.Errorf("%s: %w", fmt.Sprint(what...), err)
	}
	if err != nil {
		panic(failure{err})
	}
}

// Must returns the result of a step, or ends the run.
func Must[T any](result T, err error) T {
	Check(err)
	return result
}

// Attempt returns the error by which a step has ended what do does.
func Attempt(do func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.err
		default:
			panic(r)
		}
	}()
	do()
	return nil
}
