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

// Package tcpproxy disturbs the connections between two programs that do not know of it: it delays what they say,
// freezes it, on all connections or on some, and cuts them off.
//
// It passes bytes, and so TLS, whose certificates have to be valid for the address of the proxy. A frozen connection is
// one whose packets get lost: neither end learns anything, not even that the other has closed it. When it is restored,
// all that was said arrives, late and in order, as TCP has it.
//
// github.com/Shopify/toxiproxy has no such freeze: its timeout drops data and so has to close the connection when it
// is removed, and its latency may hang for ever when it is removed while data is on its way (issue 558 there).
package tcpproxy

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// bufferSize is how much is read at a time, and queueLength how many of these are on their way at most: who sends more
// has to wait.
const (
	bufferSize  = 32 << 10
	queueLength = 64
)

// Proxy accepts connections on a port of loopback, and connects each to a target. Its methods may be called at any time.
type Proxy struct {
	listener net.Listener
	target   string

	lock sync.Mutex
	// ends are those of all connections, two for each.
	ends map[*net.TCPConn]*connection
	// delay is how long all that is read from now on takes.
	delay time.Duration
	// thawed is closed, unless something is frozen: all, or the connections that say so.
	thawed    chan struct{}
	freezeAll bool
	// refuses is whether new connections are closed at once.
	refuses bool
	// topics returns what a client talks of, see Tell.
	topics func(said []byte) []string
}

// connection is one of a client with the target.
type connection struct {
	isFrozen bool
	// topics are what its client has talked of.
	topics map[string]bool
}

// New returns a proxy for the server at an address, which need not listen yet.
func New(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for %s: %w", target, err)
	}
	p := &Proxy{listener: listener, target: target, ends: map[*net.TCPConn]*connection{}, thawed: make(chan struct{})}
	close(p.thawed)
	go p.accept()
	return p, nil
}

// Address is where it listens.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.Cut()
	p.thaw()
}

// Cut resets all connections, and new ones, until Restore. It returns how many there were.
func (p *Proxy) Cut() int {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.refuses = true
	for end := range p.ends {
		reset(end)
	}
	return len(p.ends) / 2
}

// Freeze holds all that is said, also by new connections, until Restore. It returns how many connections there are.
func (p *Proxy) Freeze() int {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.freezeAll = true
	p.freeze()
	return len(p.ends) / 2
}

// FreezeSome holds all that some of the present connections say, until Restore, as if one of several paths was lost: they
// are chosen at random, each with a probability of one to so many. It returns how many there are. A client that has several
// connections hears of some things, and not of others.
func (p *Proxy) FreezeSome(oneOf int) int {
	p.lock.Lock()
	defer p.lock.Unlock()
	count := 0
	for c := range p.connections() {
		if c.isFrozen = rand.IntN(oneOf) == 0; c.isFrozen {
			count++
		}
	}
	p.freeze()
	return count
}

// Tell has the proxy tell connections apart by what their clients say from now on: a function returns the topics of what was
// read at once. Most protocols send what is short at once.
func (p *Proxy) Tell(topics func(said []byte) []string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.topics = topics
}

// FreezeTopic holds all that is said, until Restore, by the present connections whose clients have talked of a topic. It
// returns how many there are.
func (p *Proxy) FreezeTopic(topic string) int {
	p.lock.Lock()
	defer p.lock.Unlock()
	count := 0
	for c := range p.connections() {
		if c.isFrozen = c.topics[topic]; c.isFrozen {
			count++
		}
	}
	p.freeze()
	return count
}

// note needs no lock.
func (p *Proxy) note(c *connection, said []byte) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.topics == nil {
		return
	}
	for _, topic := range p.topics(said) {
		c.topics[topic] = true
	}
}

// connections needs the lock.
func (p *Proxy) connections() map[*connection]bool {
	all := map[*connection]bool{}
	for _, c := range p.ends {
		all[c] = true
	}
	return all
}

// freeze needs the lock.
func (p *Proxy) freeze() {
	if p.isThawed() {
		p.thawed = make(chan struct{})
	}
}

// Delay has all that is said take so long, in each direction, until Restore. It returns how many connections there are.
func (p *Proxy) Delay(delay time.Duration) int {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.delay = delay
	return len(p.ends) / 2
}

// Restore ends all disturbances. What was held or delayed arrives.
func (p *Proxy) Restore() {
	p.lock.Lock()
	p.delay, p.refuses, p.freezeAll = 0, false, false
	for c := range p.connections() {
		c.isFrozen = false
	}
	p.lock.Unlock()
	p.thaw()
}

func (p *Proxy) thaw() {
	p.lock.Lock()
	defer p.lock.Unlock()
	if !p.isThawed() {
		close(p.thawed)
	}
}

// isThawed needs the lock.
func (p *Proxy) isThawed() bool {
	select {
	case <-p.thawed:
		return true
	default:
		return false
	}
}

func (p *Proxy) awaitThaw(c *connection) {
	p.lock.Lock()
	thawed, passes := p.thawed, !p.freezeAll && !c.isFrozen
	p.lock.Unlock()
	if !passes {
		<-thawed
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // It is closed.
		}
		go p.serve(client.(*net.TCPConn))
	}
}

// serve connects a client to the target until both have nothing more to say.
func (p *Proxy) serve(client *net.TCPConn) {
	c := &connection{topics: map[string]bool{}}
	if !p.add(client, c) {
		return
	}
	defer p.remove(client)
	p.awaitThaw(c)
	dialed, err := net.Dial("tcp", p.target)
	if err != nil {
		reset(client)
		return
	}
	server := dialed.(*net.TCPConn)
	if !p.add(server, c) {
		return
	}
	defer p.remove(server)
	var both sync.WaitGroup
	both.Go(func() { p.pass(c, client, server, func(said []byte) { p.note(c, said) }) })
	both.Go(func() { p.pass(c, server, client, func([]byte) {}) })
	both.Wait()
}

// add returns false if the connection was reset.
func (p *Proxy) add(end *net.TCPConn, c *connection) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.refuses {
		reset(end)
		return false
	}
	p.ends[end] = c
	return true
}

func (p *Proxy) remove(end *net.TCPConn) {
	p.lock.Lock()
	defer p.lock.Unlock()
	delete(p.ends, end)
	_ = end.Close()
}

// chunk is what is on its way.
type chunk struct {
	data []byte
	due  time.Time
}

// pass passes on what one end says, until it has nothing more to say. note is told before.
func (p *Proxy) pass(c *connection, from, to *net.TCPConn, note func(said []byte)) {
	chunks := make(chan chunk, queueLength)
	var failed error
	go func() {
		defer close(chunks)
		buffer := make([]byte, bufferSize)
		for failed == nil {
			var n int
			n, failed = from.Read(buffer)
			note(buffer[:n])
			p.lock.Lock()
			due := time.Now().Add(p.delay)
			p.lock.Unlock()
			chunks <- chunk{bytes.Clone(buffer[:n]), due}
		}
	}()
	for next := range chunks {
		p.lock.Lock()
		isDelayed := p.delay > 0
		p.lock.Unlock()
		if isDelayed { // If not, all that was delayed arrives at once.
			time.Sleep(time.Until(next.due))
		}
		p.awaitThaw(c)
		if _, err := to.Write(next.data); err != nil {
			reset(from) // So that nothing more is read from it.
		}
	}
	if failed == io.EOF {
		_ = to.CloseWrite() // It may be closed.
		return
	}
	reset(to)
}

// reset closes a connection with an error for the other end.
func reset(end *net.TCPConn) {
	_ = end.SetLinger(0) // It may be closed.
	_ = end.Close()
}
