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

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/test/utils/localcluster"
	"k8s.io/kubernetes/test/utils/realcluster"
	"k8s.io/utils/ptr"
)

const (
	// provisioned is where the controller manager creates volumes. The path is a constant of its own.
	provisioned = "/tmp/hostpath_pv"

	// listTimeout is for a cluster whose tests have failed.
	listTimeout = 10 * time.Second
)

// newCluster returns the cluster for a suite.
func newCluster(o options, m mode, s *suite) *realcluster.Cluster {
	settings := m.settings
	// Tests of StatefulSets need volumes.
	settings.Args = append(settings.Args, "kube-controller-manager:enable-hostpath-provisioner=true")
	return &realcluster.Cluster{Local: &localcluster.Cluster{
		Name: clusterName(m, s), Output: o.output, Bin: o.programs(m), Nodes: s.nodes, Settings: &settings,
	}}
}

func clusterName(m mode, s *suite) string { return m.name + "-" + s.clusterSuffix }

// programs is the directory of the components.
func (o options) programs(m mode) string {
	if m.pristine {
		return o.base
	}
	return o.bin
}

// withCluster runs f with a cluster. The logs stay if f returns an error or false.
func withCluster(ctx context.Context, c *realcluster.Cluster, logs string, f func(kubernetes.Interface) (passed bool, err error)) (err error) {
	if err := c.Up(ctx); err != nil {
		return err
	}
	var volumes []string
	defer func() { err = errors.Join(err, c.Down(ctx), removeVolumes(volumes)) }()
	client, _, err := c.Local.Client()
	if err != nil {
		return err
	}
	if err := createStorageClass(ctx, client); err != nil {
		return err
	}
	passed, err := f(client)
	if err != nil || !passed {
		err = errors.Join(err, c.Local.KeepLogs(logs))
	}
	volumes, listErr := findVolumes(ctx, client)
	return errors.Join(err, listErr)
}

// findVolumes returns the directories that tests have left: those of tests that were interrupted, or
// whose namespaces are not empty yet.
func findVolumes(ctx context.Context, client kubernetes.Interface) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listTimeout)
	defer cancel()
	volumes, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the volumes that tests have left: %w", err)
	}
	var directories []string
	for _, volume := range volumes.Items {
		if source := volume.Spec.HostPath; source != nil && filepath.Dir(source.Path) == provisioned {
			directories = append(directories, source.Path)
		}
	}
	return directories, nil
}

// removeVolumes removes directories of a cluster that has ended, and the one that they were in
// unless another cluster uses it.
func removeVolumes(directories []string) error {
	var errs []error
	for _, directory := range directories {
		errs = append(errs, os.RemoveAll(directory))
	}
	err := unix.Rmdir(provisioned)
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTEMPTY) {
		errs = append(errs, fmt.Errorf("remove %s: %w", provisioned, err))
	}
	return errors.Join(errs...)
}

// createStorageClass lets claims without a class get a directory of the machine, which all nodes
// share.
func createStorageClass(ctx context.Context, client kubernetes.Interface) error {
	class := &storagev1.StorageClass{
		ObjectMeta:    metav1.ObjectMeta{Name: "host-path", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner:   "kubernetes.io/host-path",
		ReclaimPolicy: ptr.To(v1.PersistentVolumeReclaimDelete),
	}
	if _, err := client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the default storage class: %w", err)
	}
	return nil
}

// tester is the name of the account of the tests of a node, which take no kubeconfig but a token.
const tester = "e2e-node"

// createToken returns a token with all rights.
func createToken(ctx context.Context, client kubernetes.Interface) (string, error) {
	accounts := client.CoreV1().ServiceAccounts(metav1.NamespaceSystem)
	account := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: tester}}
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("create the account of the tests: %w", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: tester},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: tester}},
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("give the account of the tests its rights: %w", err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(suiteTimeout.Seconds()))}}
	request, err := accounts.CreateToken(ctx, tester, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create the token of the tests: %w", err)
	}
	return request.Status.Token, nil
}

// apiServer is the URL of the API server inside of the cluster.
func apiServer(ctx context.Context, client kubernetes.Interface) (string, error) {
	service, err := client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("find the API server: %w", err)
	}
	return "https://" + service.Spec.ClusterIP, nil
}
