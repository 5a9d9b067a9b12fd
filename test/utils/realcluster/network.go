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

package realcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The addresses of a cluster. They are used in namespaces of its own only, so all clusters have the
// same ones.
const (
	// controlPlaneAddress is where nodes and pods reach the API server. It is on the loopback
	// interface of the sandbox: it belongs to no link.
	controlPlaneAddress = "172.30.0.1"

	// firstService is the address of the Service of the API server.
	firstService = "10.0.0.1"

	// podNetwork is the network of all pods.
	podNetwork = "10.64.0.0/16"

	// MaxNodes is how many nodes a cluster can have: each has a network of addresses. Far fewer
	// fit into the memory of most machines.
	MaxNodes = 64
)

// nodeNetwork are the addresses of a node.
type nodeNetwork struct {
	// address is that of the node, gateway that of the sandbox on the link between them.
	address, gateway net.IP
	// pods is the network of the pods of the node.
	pods string
}

func networkOf(index int) nodeNetwork {
	return nodeNetwork{
		address: net.IPv4(172, 30, byte(index+1), 2),
		gateway: net.IPv4(172, 30, byte(index+1), 1),
		pods:    fmt.Sprintf("10.64.%d.0/24", index),
	}
}

// nodeName is the name of a node, as in clusters of test/utils/localcluster.
func nodeName(index int) string { return fmt.Sprintf("node-%d", index) }

// uplink is the interface of a node.
const uplink = "eth0"

// linkNetwork is a link's network, with the address of one of its ends.
func linkNetwork(address net.IP) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: address, Mask: net.CIDRMask(24, 32)}}
}

// setUpSandboxNetwork prepares the namespace of the sandbox.
func setUpSandboxNetwork() error {
	loopback, err := upLink("lo")
	if err != nil {
		return err
	}
	address := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(controlPlaneAddress), Mask: net.CIDRMask(32, 32)}}
	if err := netlink.AddrAdd(loopback, address); err != nil {
		return fmt.Errorf("give the API server its address: %w", err)
	}
	return enableForwarding()
}

// connectNode makes a link between the sandbox and a node, by the pid of the node's first process.
func connectNode(index, pid int) error {
	network, end := networkOf(index), nodeName(index)
	attributes := netlink.NewLinkAttrs()
	attributes.Name = end
	link := &netlink.Veth{LinkAttrs: attributes, PeerName: uplink, PeerNamespace: netlink.NsPid(pid)}
	if err := netlink.LinkAdd(link); err != nil {
		return fmt.Errorf("make a link to %s: %w", end, err)
	}
	sandboxEnd, err := upLink(end)
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(sandboxEnd, linkNetwork(network.gateway)); err != nil {
		return fmt.Errorf("give the link to %s an address: %w", end, err)
	}
	_, pods, err := net.ParseCIDR(network.pods)
	if err != nil {
		return fmt.Errorf("read the network of the pods of %s: %w", end, err)
	}
	if err := netlink.RouteAdd(&netlink.Route{Dst: pods, Gw: network.address}); err != nil {
		return fmt.Errorf("route to the pods of %s: %w", end, err)
	}
	return nil
}

// disconnectNode removes the link to a node that has ended, which the kernel may not have done yet.
func disconnectNode(index int) error {
	link, err := netlink.LinkByName(nodeName(index))
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil && !errors.As(err, &netlink.LinkNotFoundError{}) && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove the link to %s: %w", nodeName(index), err)
	}
	return nil
}

// setUpNodeNetwork prepares the namespace of a node, after connectNode.
func setUpNodeNetwork(index int) error {
	network := networkOf(index)
	if _, err := upLink("lo"); err != nil {
		return err
	}
	link, err := upLink(uplink)
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(link, linkNetwork(network.address)); err != nil {
		return fmt.Errorf("give the node its address: %w", err)
	}
	if err := netlink.RouteAdd(&netlink.Route{Gw: network.gateway}); err != nil {
		return fmt.Errorf("route to the other nodes: %w", err)
	}
	return enableForwarding()
}

func upLink(name string) (netlink.Link, error) {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkSetUp(link)
	}
	if err != nil {
		return nil, fmt.Errorf("bring %s up: %w", name, err)
	}
	return link, nil
}

// enableForwarding makes this network namespace a router: the sysctl is one of the namespace.
func enableForwarding() error {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return fmt.Errorf("enable forwarding: %w", err)
	}
	return nil
}

// forward accepts connections and connects each to an address, until ctx is over.
func forward(ctx context.Context, listener net.Listener, address string) error {
	return forwardBy(ctx, listener, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	})
}

// forwardBy accepts connections and connects each by dial, until ctx is over.
func forwardBy(ctx context.Context, listener net.Listener, dial func(context.Context) (net.Conn, error)) error {
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	for {
		client, err := listener.Accept()
		if err != nil {
			return fmt.Errorf("accept a connection to the API server: %w", err)
		}
		go func() {
			defer client.Close()
			server, err := dial(ctx)
			if err != nil {
				return // The client sees that its connection is closed.
			}
			defer server.Close()
			done := make(chan struct{})
			go func() {
				defer close(done)
				pipe(server, client)
			}()
			pipe(client, server)
			<-done
		}()
	}
}

// pipe copies until one end is closed, and then says so to the other end.
func pipe(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		to.Close() // A reset.
		return
	}
	_ = to.(*net.TCPConn).CloseWrite() // It may be closed.
}
