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

package drain

import (
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// maxDenial is for how long evictions are tried again that an admission webhook or policy denies. Many deny for a
// moment only, such as while an operator moves a primary; one that denies for ever must not keep the command
// forever.
const maxDenial = 5 * time.Minute

// hasLeft reports whether the pod that is to leave the node is gone, and another one has its name on another node, as
// with StatefulSets. That one is not to be evicted. A pod itself never changes its node.
func hasLeft(drained, pod *corev1.Pod) bool {
	return pod.Spec.NodeName != drained.Spec.NodeName
}

// evictionOptions are the options of the eviction of this pod, and of no other that gets its name in the meantime.
func (d *Helper) evictionOptions(pod *corev1.Pod) metav1.DeleteOptions {
	options := d.makeDeleteOptions()
	if pod.UID != "" {
		options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	}
	return options
}

// answer returns the answer to an eviction as the drain has to take it: nil if it is over, TooManyRequests if it has to
// be tried again, and otherwise an error that ends it.
func (d *Helper) answer(errOut io.Writer, pod *corev1.Pod, err error) error {
	switch {
	case d.DryRunStrategy == cmdutil.DryRunServer && apierrors.IsTooManyRequests(err):
		// Nothing changes until the next attempt, as nothing is evicted.
		//nolint:errcheck
		fmt.Fprintf(errOut, "pods/%q -n %q would have to wait (server dry run): %v\n", pod.Name, pod.Namespace, err)
		return nil
	case pod.UID != "" && apierrors.IsConflict(err):
		return apierrors.NewTooManyRequestsError("another pod may have its name now: " + err.Error())
	case d.Requests.isDeniedForNow(pod, err):
		return apierrors.NewTooManyRequestsError(err.Error())
	}
	return err
}

// isDenial reports whether admission has denied the eviction, and not authorization, which does not change.
func isDenial(err error) bool {
	return err != nil && !apierrors.IsTooManyRequests(err) &&
		(strings.Contains(err.Error(), "admission webhook ") || strings.Contains(err.Error(), "ValidatingAdmissionPolicy "))
}

// isDeniedForNow reports whether the eviction is denied, and has not been for longer than maxDenial.
func (r *Requests) isDeniedForNow(pod *corev1.Pod, err error) bool {
	if r == nil {
		return false
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	if !isDenial(err) {
		delete(r.denied, pod.UID)
		return false
	}
	since, found := r.denied[pod.UID]
	if !found {
		since = r.now()
		r.denied[pod.UID] = since
	}
	return r.now().Sub(since) < maxDenial
}
