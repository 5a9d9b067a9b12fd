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

package system

import (
	"net/url"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/hack/controlplane"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/tcpproxy"
)

// historyNetwork are the proxies between the programs, by the replica whose API server they are about.
type historyNetwork struct {
	// etcd are those from the API server to each member of etcd, controllerManager is the one from the controller manager
	// to the API server, and clients is that from all others.
	etcd, controllerManager, clients []*tcpproxy.Proxy
}

// newHistoryNetwork puts the proxies in front of an API server and its etcd. Nothing runs yet.
func newHistoryNetwork(tCtx ktesting.TContext, replica *controlplane.ControlPlane) *historyNetwork {
	tCtx.Helper()
	n := &historyNetwork{}
	open := func(address string) *tcpproxy.Proxy {
		target, err := url.Parse(address)
		tCtx.ExpectNoError(err)
		proxy, err := tcpproxy.New(target.Host)
		tCtx.ExpectNoError(err)
		tCtx.Cleanup(proxy.Close)
		return proxy
	}
	var servers []string
	for _, server := range replica.EtcdServers() {
		n.etcd = append(n.etcd, open(server))
		servers = append(servers, "http://"+n.etcd[len(n.etcd)-1].Address())
	}
	replica.UseEtcdServers(servers)
	n.controllerManager = []*tcpproxy.Proxy{open(replica.Config().Host)}
	n.clients = []*tcpproxy.Proxy{open(replica.Config().Host)}
	return n
}

// throughProxy returns a configuration for what asks an API server through a proxy.
func throughProxy(config *rest.Config, proxy *tcpproxy.Proxy) *rest.Config {
	config = rest.CopyConfig(config)
	config.Host = "https://" + proxy.Address()
	return config
}

// links are some of the connections of a network, and a name of them. No program is started while those are disturbed
// that it needs: it might end.
type links struct {
	name     string
	of       func(n *historyNetwork) []*tcpproxy.Proxy
	isNeeded bool
}

var historyLinks = []links{
	{"a controller manager", func(n *historyNetwork) []*tcpproxy.Proxy { return n.controllerManager }, true},
	{"an API server to etcd", func(n *historyNetwork) []*tcpproxy.Proxy { return n.etcd }, true},
	{"clients to an API server", func(n *historyNetwork) []*tcpproxy.Proxy { return n.clients }, false},
}

// networkFaults cut, freeze and delay each of the links.
func networkFaults() []historyFault {
	var faults []historyFault
	for _, l := range historyLinks {
		faults = append(faults,
			historyFault{"cut the connections of " + l.name, func(t *historyTest, tCtx ktesting.TContext, d disturbance) {
				t.disturb(tCtx, l, d, d.short, (*tcpproxy.Proxy).Cut)
			}},
			historyFault{"freeze the connections of " + l.name, func(t *historyTest, tCtx ktesting.TContext, d disturbance) {
				t.disturb(tCtx, l, d, d.long, (*tcpproxy.Proxy).Freeze)
			}},
			historyFault{"delay the connections of " + l.name, func(t *historyTest, tCtx ktesting.TContext, d disturbance) {
				t.disturb(tCtx, l, d, d.long, func(p *tcpproxy.Proxy) int { return p.Delay(d.short / 2) })
			}},
		)
	}
	return faults
}

// disturb does something to links for a time. Other faults may come meanwhile, but no other one of the network.
func (t *historyTest) disturb(tCtx ktesting.TContext, l links, d disturbance, duration time.Duration, how func(*tcpproxy.Proxy) int) {
	tCtx.Helper()
	t.disturbed.Wait()
	proxies := l.of(t.networks[slices.Index(t.replicas, d.replica)])
	count := 0
	for _, proxy := range proxies {
		count += how(proxy)
	}
	tCtx.Logf("%d connections of %s are disturbed", count, l.name)
	end := func() {
		select {
		case <-t.found:
		case <-time.After(duration):
		}
		for _, proxy := range proxies {
			proxy.Restore()
		}
	}
	t.prevents = l.isNeeded
	t.disturbed.Go(end)
	if !d.meanwhile {
		t.disturbed.Wait()
	}
}

// awaitNetwork waits until programs can be started.
func (t *historyTest) awaitNetwork() {
	if t.prevents {
		t.disturbed.Wait()
	}
}
