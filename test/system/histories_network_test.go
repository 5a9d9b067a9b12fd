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
	"regexp"
	"slices"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/kubernetes/test/utils/tcpproxy"
)

// historyNetwork are the proxies between the programs, by the replica whose API server they are about.
type historyNetwork struct {
	// etcd are those from the API server to each member of etcd, controllerManager is the one from the controller manager
	// to the API server, and clients is that from all others.
	etcd, controllerManager, clients []*tcpproxy.Proxy
}

// openProxy opens a proxy in front of an address.
func openProxy(tCtx ktesting.TContext, address string) (*tcpproxy.Proxy, error) {
	target, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	proxy, err := tcpproxy.New(target.Host)
	if err == nil {
		tCtx.Cleanup(proxy.Close)
	}
	return proxy, err
}

// reachPeer puts proxies in front of the members of etcd, for one another.
func (t *historyTest) reachPeer(tCtx ktesting.TContext) func(listens string) (url string, err error) {
	return func(listens string) (string, error) {
		proxy, err := openProxy(tCtx, listens)
		if err != nil {
			return "", err
		}
		t.peers = append(t.peers, proxy)
		return "http://" + proxy.Address(), nil
	}
}

// newHistoryNetwork puts the proxies in front of an API server and its etcd. Nothing runs yet.
func newHistoryNetwork(tCtx ktesting.TContext, replica *controlplane.ControlPlane) *historyNetwork {
	tCtx.Helper()
	n := &historyNetwork{}
	open := func(address string) *tcpproxy.Proxy {
		proxy, err := openProxy(tCtx, address)
		tCtx.ExpectNoError(err)
		return proxy
	}
	var servers []string
	for _, server := range replica.EtcdServers() {
		n.etcd = append(n.etcd, open(server))
		n.etcd[len(n.etcd)-1].Tell(watchesIn)
		servers = append(servers, "http://"+n.etcd[len(n.etcd)-1].Address())
	}
	replica.UseEtcdServers(servers)
	n.controllerManager = []*tcpproxy.Proxy{open(replica.Config().Host)}
	n.clients = []*tcpproxy.Proxy{open(replica.Config().Host)}
	return n
}

// aWatch begins a watch of etcd, whose key is in a message that is in another one. What reads or writes has the key in the
// first message.
var aWatch = regexp.MustCompile(`(?s)\n.\n./registry/([a-z]+)/`)

// watchesIn returns the resources of which kube-apiserver begins to watch changes.
func watchesIn(said []byte) []string {
	var resources []string
	for _, match := range aWatch.FindAllSubmatch(said, -1) {
		resources = append(resources, string(match[1]))
	}
	return resources
}

// TestWatchesIn tells what begins a watch from what reads.
func TestWatchesIn(t *testing.T) {
	encode := func(message proto.Message) []byte {
		data, err := proto.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		return append([]byte{0, 0, 0, 0, byte(len(data))}, data...) // As gRPC does.
	}
	key, end := []byte("/registry/nodemaintenances/"), []byte("/registry/nodemaintenances0")
	watch := encode(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{
		CreateRequest: &etcdserverpb.WatchCreateRequest{Key: key, RangeEnd: end, StartRevision: 7, PrevKv: true},
	}})
	if got := watchesIn(watch); !slices.Equal(got, []string{"nodemaintenances"}) {
		t.Errorf("a watch is of %q, want nodemaintenances", got)
	}
	if got := watchesIn(encode(&etcdserverpb.RangeRequest{Key: key, RangeEnd: end, Limit: 500})); got != nil {
		t.Errorf("what reads is taken for a watch of %q", got)
	}
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
	of       func(t *historyTest, d disturbance) []*tcpproxy.Proxy
	isNeeded bool
}

var historyLinks = []links{
	{"a controller manager", func(t *historyTest, d disturbance) []*tcpproxy.Proxy { return t.networkOf(d).controllerManager }, true},
	{"an API server to etcd", func(t *historyTest, d disturbance) []*tcpproxy.Proxy { return t.networkOf(d).etcd }, true},
	{"clients to an API server", func(t *historyTest, d disturbance) []*tcpproxy.Proxy { return t.networkOf(d).clients }, false},
	// What it has to say goes the other way.
	{"members of etcd to another one", func(t *historyTest, d disturbance) []*tcpproxy.Proxy { return t.peers[d.member : d.member+1] }, true},
}

func (t *historyTest) networkOf(d disturbance) *historyNetwork {
	return t.networks[slices.Index(t.replicas, d.replica)]
}

// paths is how many there are through the network, of which one may be lost. kube-apiserver has a connection to each member of
// etcd for each resource: it hears of some resources, and not of others. So controllers decide by caches of different ages.
const paths = 4

// networkFaults cut, freeze and delay each of the links, also a part of their connections.
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
			historyFault{"freeze some of the connections of " + l.name, func(t *historyTest, tCtx ktesting.TContext, d disturbance) {
				t.disturb(tCtx, l, d, d.long, func(p *tcpproxy.Proxy) int { return p.FreezeSome(paths) })
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
	proxies := l.of(t, d)
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
