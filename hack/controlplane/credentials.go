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

package controlplane

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// auditPolicy records every attempt to evict a pod, with its answer, before and after:
// the answer is missing where the server was killed in between.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: RequestResponse
  verbs: [create]
  resources: [{group: "", resources: [pods/eviction]}]
- level: None
`

// auditAllPolicy records every request once, when it is answered, with what was sent.
const auditAllPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Request
`

// credentials are files by which the components trust one another. They are made for
// one control plane and worth nothing outside of it.
type credentials struct {
	certFile, keyFile     string // Of all servers; the certificate is its own authority.
	serviceAccountKeyFile string
	tokenFile             string
	kubeconfig            string // Of the controller manager.
	auditPolicyFile       string
	adminToken            string
}

// newCredentials writes the files for an API server at the URL below dir.
func newCredentials(dir, url string) (*credentials, error) {
	file := func(name string) string { return filepath.Join(dir, "tls", name) }
	c := &credentials{
		certFile: file("server.crt"), keyFile: file("server.key"),
		serviceAccountKeyFile: file("service-account.key"),
		tokenFile:             file("tokens.csv"),
		kubeconfig:            file("controller-manager.kubeconfig"),
		auditPolicyFile:       file("audit-policy.yaml"),
		adminToken:            rand.Text(),
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"})
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	serviceAccountKey, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return nil, fmt.Errorf("making the key of the service accounts: %w", err)
	}
	managerToken := rand.Text()
	tokens := fmt.Sprintf("%s,admin,admin,system:masters\n%s,system:kube-controller-manager,system:kube-controller-manager,\n", c.adminToken, managerToken)
	for name, content := range map[string][]byte{
		c.certFile:              certificate,
		c.keyFile:               key,
		c.serviceAccountKeyFile: serviceAccountKey,
		c.tokenFile:             []byte(tokens),
		c.auditPolicyFile:       []byte(auditPolicy),
	} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return nil, fmt.Errorf("writing the credentials: %w", err)
		}
	}
	if err := clientcmd.WriteToFile(*newKubeconfig(url, certificate, managerToken), c.kubeconfig); err != nil {
		return nil, fmt.Errorf("writing the kubeconfig of the controller manager: %w", err)
	}
	return c, nil
}

func newKubeconfig(url string, authority []byte, token string) *clientcmdapi.Config {
	const name = "local"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: authority}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return config
}
