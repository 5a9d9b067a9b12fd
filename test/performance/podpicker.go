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
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/test/utils/steps"
	"k8s.io/utils/ptr"
)

const (
	pickerGates = featureGates + ",DownscalePodPicker=true"

	// pickerLabel is on the ReplicaSets of this part.
	pickerLabel = "example.com/podpicker"

	// pickerQPS is so much that the controller manager does not wait for its own limits: with the
	// default ones, both sides of a comparison would measure these.
	pickerQPS = 5000

	// The ReplicaSets are in so many namespaces, between which the controller divides its calls. They
	// have pods on nodes with room for 110.
	pickerNamespaces = 10
	setPods          = 5
	setPodsLeft      = 3
	podsPerSetNode   = 100

	// quickAnswer is how long the picker takes that answers.
	quickAnswer = 5 * time.Millisecond

	// hangingSets have a picker each that hangs, and hangRetries and hangTimeout: long enough to scale the
	// ReplicaSet beside them several times. hangPause is that of the controller before the one retry.
	hangingSets = 100
	hangRetries = 1
	hangTimeout = 15 * time.Second
	hangPause   = 200 * time.Millisecond

	// questionTimeout is long enough to read the memory while all ReplicaSets wait.
	questionTimeout = 30 * time.Second

	// burstTime is what a hundred scale-downs take more that begin at the same time, at the end of their
	// questions, than those that clients begin one by one.
	burstTime = time.Second

	// The ReplicaSet without a picker. It is scaled down so often in each run.
	besidePods     = 40
	besidePodsLeft = 20
	besideRounds   = 30

	// settleInterval is how often it is asked whether all ReplicaSets are settled. When they were is
	// known from their watch.
	settleInterval = 20 * time.Millisecond

	// memoryReads is how often the memory is read: it is never quite at rest.
	memoryReads = 3

	// Names of the cases.
	besideNone    = "one without a picker, nothing else"
	besideHanging = "one without a picker, beside 100 that wait"
	plainSets     = "100 without a picker"
	hungSets      = "100 whose pickers hang"
	setsPlain     = "all without a picker"
	setsPicked    = "all with a picker that answers in 5 ms"
	setsWaiting   = "all wait for pickers that hang"

	// Names of the figures.
	scaledAfter   = "scaled down after"
	longestAfter  = "the last one scaled down after"
	hangDelay     = "longest delay by their pickers"
	timesPlain    = "times as long as without"
	memoryPerWait = "memory of the controller manager per question"
)

// measurePodPicker measures what downscale pod pickers cost: those of other ReplicaSets that hang, those
// that answer, and those that are waited for.
func measurePodPicker(ctx context.Context, opts options, r *report) {
	quick := steps.Must(startPickers("127.0.0.", 1, quickAnswer))
	defer func() { steps.Check(quick.close()) }()
	hanging := steps.Must(startPickers("127.0.1.", hangingSets, 0))
	defer func() { steps.Check(hanging.close()) }()
	opts.nodes = 1 + (opts.pickerSets*setPods+podsPerSetNode-1)/podsPerSetNode
	opts.args = append(append(slices.Clone(opts.args), managerLimits(pickerQPS, pickerQPS)...), openProfiles,
		fmt.Sprintf("kube-controller-manager:downscale-pod-picker-allowed-cidrs=127.0.0.1/32:%d,127.0.1.0/24:%d", quick.port, hanging.port))
	p := &picking{
		quick: quick, hanging: hanging,
		scaled: r.table(rowPerFigure, "%d ReplicaSets from %d to %d pods, medians of %d runs. The controller manager has --kube-api-qps=%d here.",
			opts.pickerSets, setPods, setPodsLeft, opts.runs, pickerQPS),
		beside: r.table(rowPerCase, "A ReplicaSet without a picker from %d to %d pods, medians of %d runs of %d, and %d others from %d to %d pods.",
			besidePods, besidePodsLeft, opts.runs, besideRounds, min(hangingSets, opts.pickerSets), setPods, setPodsLeft),
	}
	onCluster(ctx, opts, r, pickerGates, func(c *cluster) {
		p.cluster = c
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // Ends the watch.
		p.run(ctx)
		comparePickers(p.scaled, p.beside)
	})
}

// picking is the measurement of pickers.
type picking struct {
	*cluster
	quick, hanging *pickerServer
	scaled, beside *table
	watch          *setWatch
	sets           []types.NamespacedName
	single         types.NamespacedName
}

func (p *picking) run(ctx context.Context) {
	p.create(ctx)
	// Quick ones first: whoever has hung gets fewer places for a time.
	for run := range p.opts.runs {
		p.measureScaled(ctx, run)
	}
	for run := range p.opts.runs {
		p.measureHanging(ctx, run)
	}
	p.measureWaiting(ctx)
}

// create creates the ReplicaSets and waits for their pods.
func (p *picking) create(ctx context.Context) {
	for i := range pickerNamespaces {
		p.createNamespace(ctx, pickerNamespace(i))
	}
	for i := range p.opts.pickerSets {
		p.sets = append(p.sets, types.NamespacedName{Namespace: pickerNamespace(i), Name: appName(i)})
	}
	p.single = types.NamespacedName{Namespace: namespace, Name: "single"}
	p.watch = &setWatch{states: map[types.NamespacedName]setState{}}
	watchAll(ctx, p.cluster, func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.Apps().V1().ReplicaSets().Informer()
	},
		func(rs *appsv1.ReplicaSet) { p.watch.see(rs, time.Now()) },
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = pickerLabel }))
	fmt.Printf("podpicker: creating %d ReplicaSets with %d pods\n", len(p.sets), setPods)
	all := append(slices.Clone(p.sets), p.single)
	s := newScaling(all)
	p.inParallel(ctx, len(all), func(ctx context.Context, i int) {
		pods := int32(setPods)
		if all[i] == p.single {
			pods = besidePods
		}
		s.began[i], s.generations[i] = time.Now(), 1
		steps.Must(p.setup.AppsV1().ReplicaSets(all[i].Namespace).Create(ctx, newReplicaSet(i, all[i].Name, pods, nodeName(i%p.opts.nodes)), metav1.CreateOptions{}))
	})
	p.await(ctx, s)
	p.quiet(ctx)
}

func pickerNamespace(index int) string {
	return fmt.Sprintf("%s-%d", namespace, index%pickerNamespaces)
}

// newReplicaSet returns a ReplicaSet whose pods are bound to a node and gone when they are deleted:
// neither the scheduler nor the end of containers is measured.
func newReplicaSet(index int, name string, pods int32, node string) *appsv1.ReplicaSet {
	spec := podSpec(0)
	spec.NodeName = node
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{pickerLabel: ""}},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To(pods),
			Selector: &metav1.LabelSelector{MatchLabels: appLabels(index)},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: appLabels(index)}, Spec: spec},
		},
	}
}

// quiet waits until controllers are silent.
func (p *picking) quiet(ctx context.Context) { p.audit.untilQuiet(ctx, byAnyController) }

// withoutPicker is the picker of no ReplicaSet.
func withoutPicker(int) *v1.DownscalePodPicker { return nil }

// measureScaled scales all ReplicaSets down at once, without a picker and with one that answers.
func (p *picking) measureScaled(ctx context.Context, run int) {
	// With the defaults of the API.
	quick := func(i int) *v1.DownscalePodPicker { return p.quick.spec(i, 3, time.Second) }
	for _, way := range []struct {
		name   string
		picker func(int) *v1.DownscalePodPicker
	}{{setsPlain, withoutPicker}, {setsPicked, quick}} {
		_, _, before := p.quick.counts()
		var whole float64
		m := p.measure(ctx, byAnyController, func() {
			s, took := p.scale(ctx, p.sets, setPodsLeft, way.picker)
			whole = s.whole(took)
		})
		_, _, after := p.quick.counts()
		fmt.Printf("run %d of %d, %-40s %8.1f s, picker asked %d times\n", run+1, p.opts.runs, way.name, whole, after-before)
		perSet := func(name string, number float64) result {
			return result{Name: name, Unit: "per ReplicaSet", digits: 2, Value: number / float64(len(p.sets))}
		}
		p.scaled.add(way.name,
			result{Name: scaledAfter, Unit: "s", digits: 2, Value: whole},
			perSet("requests of the replicaset-controller", m.all.count(by(replicaSetController))),
			perSet("picker has answered", float64(after-before)))
		p.restore(ctx, p.sets)
	}
}

// restore gives ReplicaSets their pods back.
func (p *picking) restore(ctx context.Context, sets []types.NamespacedName) {
	p.scale(ctx, sets, setPods, withoutPicker)
	p.quiet(ctx)
}

// measureHanging scales one ReplicaSet down without and beside others that wait for their pickers, and
// these without and with pickers.
func (p *picking) measureHanging(ctx context.Context, run int) {
	sets := p.sets[:min(hangingSets, len(p.sets))]
	p.scaleSingle(ctx, besideNone)
	_, plain := p.scale(ctx, sets, setPodsLeft, withoutPicker)
	p.beside.add(plainSets, result{Name: longestAfter, Unit: "s", digits: 2, Value: slices.Max(plain)})
	p.restore(ctx, sets)
	s := p.patch(ctx, sets, setPodsLeft, func(i int) *v1.DownscalePodPicker { return p.hanging.spec(i, hangRetries, hangTimeout) })
	p.awaitWaiting(ctx, s)
	p.quiet(ctx) // As before the ReplicaSet was scaled alone.
	p.scaleSingle(ctx, besideHanging)
	p.stillWait(s)
	longest := slices.Max(p.await(ctx, s))
	_, most, _ := p.hanging.counts()
	fmt.Printf("run %d of %d, %s: the last one was scaled down after %.1f s, %d were asked at a time\n", run+1, p.opts.runs, hungSets, longest, most)
	p.beside.add(hungSets,
		result{Name: longestAfter, Unit: "s", digits: 2, Value: longest},
		result{Name: "asked at a time, at most", Value: float64(most)})
	p.restore(ctx, sets)
	// Once more: what else changes in the course of a run is on both sides of the comparison.
	p.scaleSingle(ctx, besideNone)
}

// scaleSingle scales the single ReplicaSet down several times.
func (p *picking) scaleSingle(ctx context.Context, name string) {
	single := []types.NamespacedName{p.single}
	var all []float64
	for range besideRounds {
		_, took := p.scale(ctx, single, besidePodsLeft, withoutPicker)
		p.scale(ctx, single, besidePods, withoutPicker)
		p.beside.add(name, result{Name: scaledAfter, Unit: "ms", digits: 1, Value: 1000 * took[0]})
		all = append(all, 1000*took[0])
	}
	fmt.Printf("%s: %.0f ms\n", name, median(all))
}

// measureWaiting measures what a question needs that waits for its picker: heap, and the stack of its
// goroutine.
func (p *picking) measureWaiting(ctx context.Context) {
	picker := func(i int) *v1.DownscalePodPicker { return p.hanging.spec(i, hangRetries, questionTimeout) }
	// What the picker in the ReplicaSet needs is there before.
	p.scale(ctx, p.sets, setPods, picker)
	p.awaitCalm(ctx)
	before := p.medianMemory(ctx)
	s := p.patch(ctx, p.sets, setPodsLeft, picker)
	p.awaitWaiting(ctx, s)
	waiting := p.medianMemory(ctx)
	p.stillWait(s)
	perQuestion := (waiting - before) / 1024 / float64(len(p.sets))
	fmt.Printf("%s: %.1f KiB each\n", setsWaiting, perQuestion)
	p.scaled.add(setsWaiting,
		result{Name: memoryPerWait, Unit: "KiB", digits: 2, Value: perQuestion},
		result{Name: scaledAfter, Unit: "s", digits: 2, Value: s.whole(p.await(ctx, s))})
}

// medianMemory returns the median of what several reads find of heap and stacks, in bytes.
func (p *picking) medianMemory(ctx context.Context) float64 {
	var values []float64
	for range memoryReads {
		heap, stacks := p.managerMemory(ctx)
		values = append(values, heap+stacks)
	}
	return median(values)
}

// comparePickers sets the targets.
func comparePickers(scaled, beside *table) {
	scaled.derive(setsPicked, result{Name: timesPlain, digits: 3, Value: scaled.value(setsPicked, scaledAfter) / scaled.value(setsPlain, scaledAfter)})
	scaled.want(setsPicked, timesPlain, atMost, 1.2)
	scaled.want(setsPicked, "picker has answered", atLeast, 1)
	scaled.want(setsWaiting, memoryPerWait, atMost, 16)

	beside.derive(besideHanging, result{Name: timesPlain, digits: 3, Value: beside.value(besideHanging, scaledAfter) / beside.value(besideNone, scaledAfter)})
	beside.want(besideHanging, timesPlain, atMost, 1.05)
	if hung := beside.find(hungSets, longestAfter); hung != nil {
		beside.derive(hungSets, result{Name: hangDelay, Unit: "s", digits: 2, Value: slices.Max(hung.Runs) - beside.value(plainSets, longestAfter)})
	}
	beside.want(hungSets, hangDelay, atMost, (longestWait(hangTimeout) + burstTime).Seconds())
}

// longestWait is how long a scale-down waits for a picker at most.
func longestWait(timeout time.Duration) time.Duration { return (hangRetries+1)*timeout + hangPause }

// scaling is a change of ReplicaSets, each of which began at a time, and has a generation since then.
type scaling struct {
	sets        []types.NamespacedName
	began       []time.Time
	generations []int64
}

func newScaling(sets []types.NamespacedName) *scaling {
	return &scaling{sets, make([]time.Time, len(sets)), make([]int64, len(sets))}
}

// whole returns the time from the first change to the last end, in seconds.
func (s *scaling) whole(took []float64) float64 {
	first, last := s.began[0], s.began[0]
	for i, began := range s.began {
		if began.Before(first) {
			first = began
		}
		if ended := began.Add(time.Duration(took[i] * float64(time.Second))); ended.After(last) {
			last = ended
		}
	}
	return last.Sub(first).Seconds()
}

// scale scales ReplicaSets, and returns how long each took to have its pods, and no more.
func (p *picking) scale(ctx context.Context, sets []types.NamespacedName, pods int, picker func(int) *v1.DownscalePodPicker) (*scaling, []float64) {
	s := p.patch(ctx, sets, pods, picker)
	return s, p.await(ctx, s)
}

// patch writes the replicas and the picker of ReplicaSets.
func (p *picking) patch(ctx context.Context, sets []types.NamespacedName, pods int, picker func(int) *v1.DownscalePodPicker) *scaling {
	s := newScaling(sets)
	p.inParallel(ctx, len(sets), func(ctx context.Context, i int) {
		patch := steps.Must(json.Marshal(map[string]any{"spec": map[string]any{"replicas": pods, "downscalePodPicker": picker(i)}}))
		s.began[i] = time.Now()
		changed, err := p.setup.AppsV1().ReplicaSets(sets[i].Namespace).Patch(ctx, sets[i].Name, types.MergePatchType, patch, metav1.PatchOptions{})
		steps.Check(err, "scaling ReplicaSet ", sets[i])
		s.generations[i] = changed.Generation
	})
	return s
}

// await waits until all ReplicaSets are settled, and returns after how many seconds each was.
func (p *picking) await(ctx context.Context, s *scaling) (took []float64) {
	err := poll(ctx, settleInterval, stepTimeout, func(context.Context) bool {
		took = p.watch.took(s)
		return len(took) == len(s.sets)
	})
	steps.Check(err, fmt.Sprintf("waiting for the pods of ReplicaSets, %d of %d have what they should", len(took), len(s.sets)))
	return took
}

// awaitWaiting waits until the controller has seen the change of all ReplicaSets, and asks pickers.
func (p *picking) awaitWaiting(ctx context.Context, s *scaling) {
	await(ctx, "the controller to ask pickers", settleInterval, stepTimeout, func(context.Context) bool {
		asking, _, _ := p.hanging.counts()
		return asking > 0 && p.watch.observed(s)
	})
}

// stillWait fails if a ReplicaSet has been scaled down: then too little time was left to measure others.
func (p *picking) stillWait(s *scaling) {
	if took := p.watch.took(s); len(took) > 0 {
		steps.Check(fmt.Errorf("%d of %d ReplicaSets no longer waited at the end of the measurement: the machine is too slow for it", len(took), len(s.sets)))
	}
}

// setWatch knows since when ReplicaSets have the pods that they should have.
type setWatch struct {
	lock sync.Mutex
	// states has the newest generations.
	states map[types.NamespacedName]setState
}

type setState struct {
	// observed is the generation that the controller has seen.
	observed int64
	// settled is the newest generation of which it had all pods, and no more, first at a time.
	settled   int64
	settledAt time.Time
}

func (w *setWatch) see(rs *appsv1.ReplicaSet, now time.Time) {
	w.lock.Lock()
	defer w.lock.Unlock()
	name := types.NamespacedName{Namespace: rs.Namespace, Name: rs.Name}
	state := w.states[name]
	state.observed = rs.Status.ObservedGeneration
	if isReplicaSetSettled(rs) && state.settled < rs.Generation {
		state.settled, state.settledAt = rs.Generation, now
	}
	w.states[name] = state
}

// took returns after how many seconds ReplicaSets were settled, of those that are.
func (w *setWatch) took(s *scaling) []float64 {
	w.lock.Lock()
	defer w.lock.Unlock()
	var all []float64
	for i, name := range s.sets {
		if state := w.states[name]; state.settled >= s.generations[i] {
			all = append(all, state.settledAt.Sub(s.began[i]).Seconds())
		}
	}
	return all
}

// observed reports whether the controller has seen the change of all ReplicaSets.
func (w *setWatch) observed(s *scaling) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	for i, name := range s.sets {
		if w.states[name].observed < s.generations[i] {
			return false
		}
	}
	return true
}
