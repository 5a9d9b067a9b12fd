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

package maintenance

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/util/exec"
	"k8s.io/component-helpers/plaintext"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// checkErr ends the program if there is an error, like every command of kubectl. It prints plain
// text: servers and their webhooks repeat texts of other clients.
func checkErr(err error) { cmdutil.CheckErr(plainError(err)) }

// plainError keeps the kinds of errors that cmdutil.CheckErr distinguishes.
func plainError(err error) error {
	switch e := err.(type) {
	case nil:
		return nil
	case *apierrors.StatusError:
		return plainStatus(e)
	case exec.CodeExitError:
		return exec.CodeExitError{Err: plainError(e.Err), Code: e.Code}
	case utilerrors.Aggregate:
		var all []error
		for _, one := range e.Errors() {
			all = append(all, plainError(one))
		}
		return utilerrors.NewAggregate(all)
	}
	text := err.Error()
	for _, status := range statusesIn(err) {
		text = strings.ReplaceAll(text, status.Error(), plainStatus(status).Error())
	}
	if text = plaintext.Escape(text); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// plainStatus keeps each text of the server on one line, so that a text cannot imitate another
// line.
func plainStatus(err *apierrors.StatusError) *apierrors.StatusError {
	plain := &apierrors.StatusError{ErrStatus: *err.ErrStatus.DeepCopy()}
	plain.ErrStatus.Message = plaintext.Line(plain.ErrStatus.Message)
	if details := plain.ErrStatus.Details; details != nil {
		details.Kind, details.Name = plaintext.Line(details.Kind), plaintext.Line(details.Name)
		for i := range details.Causes {
			cause := &details.Causes[i]
			cause.Field, cause.Message = plaintext.Line(cause.Field), plaintext.Line(cause.Message)
		}
	}
	return plain
}

// statusesIn returns all errors of the server that an error wraps.
func statusesIn(err error) []*apierrors.StatusError {
	switch e := err.(type) {
	case *apierrors.StatusError:
		return []*apierrors.StatusError{e}
	case interface{ Unwrap() error }:
		return statusesIn(e.Unwrap())
	case interface{ Unwrap() []error }:
		var all []*apierrors.StatusError
		for _, one := range e.Unwrap() {
			all = append(all, statusesIn(one)...)
		}
		return all
	}
	return nil
}

// failed returns an error that is printed unchanged and ends the program with exit code 1.
func failed(format string, args ...any) error {
	return exec.CodeExitError{Err: fmt.Errorf("error: "+format, args...), Code: cmdutil.DefaultErrorExitCode}
}

// joined returns a single error as it is, so that kubectl recognizes the status of the server in
// it. Several of them have the exit code of the wait that has ended early, if there is one.
func joined(errs []error) error {
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	all := errors.Join(errs...)
	for _, err := range errs {
		if exit, ok := err.(exec.CodeExitError); ok && exit.Code != cmdutil.DefaultErrorExitCode {
			return exec.CodeExitError{Err: all, Code: exit.Code}
		}
	}
	return all
}
