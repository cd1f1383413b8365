package chart

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
)

// The limits of one rendering. They do not depend on the load of the machine, so that the result does not either.
const (
	// maxSteps limits the iterations of loops, the calls of functions and templates, the parts of templates that are executed,
	// at nodesPerStep a step, and what functions read, at 64 bytes a step. A large public chart takes some 200,000.
	maxSteps = 5_000_000
	// maxMade limits the bytes of all values that functions make together.
	maxMade = 256 << 20
	// maxCalls limits how deeply templates call each other, as Helm does.
	maxCalls = 1_000
	// deepestValue limits the nesting of values that are written, which may refer to themselves.
	deepestValue = 200
	// maxPerCall limits the bytes that one call makes.
	maxPerCall = 32 << 20
	// yamlPerStep is how many bytes of YAML are written for a step.
	yamlPerStep = 2
	// pollEvery is the number of steps after which is looked whether the result is still needed. A call counts pollCall more, since
	// some take longer than their steps.
	pollEvery = 4_096
	pollCall  = 64
)

// A budget is what one rendering may still cost. Its errors end the rendering.
type budget struct {
	steps, made, output int64
	limits              limit.Limits
	calls               int
	poll                int64
	done                <-chan struct{}
	deadline            time.Time
}

func (c *Chart) newBudget() *budget {
	return &budget{steps: c.steps, made: maxMade, output: c.limits.BuildOutput, limits: c.limits, done: c.tree.Done(), deadline: c.deadline}
}

var (
	errSteps = errors.New("the chart takes too many steps to render: loop over fewer items, or call fewer templates in loops")
	errMade  = fmt.Errorf("the values that the templates make take more than %s: make them smaller", limit.Size(maxMade))
	errCalls = fmt.Errorf("templates call each other more than %d times deep: end the recursion", maxCalls)
	errSize  = fmt.Errorf("the value takes more than %s: make it smaller", limit.Size(maxPerCall))
	errCycle = fmt.Errorf("the value is nested deeper than %d levels, or contains itself", deepestValue)
	errLate  = errors.New("the rendering took too long")
	errEnded = errors.New("the commit is not needed any more")
)

// step takes steps.
func (b *budget) step(n int64) error {
	if b.steps -= n; b.steps < 0 {
		return errSteps
	}
	if b.poll += n + pollCall; b.poll >= pollEvery {
		b.poll = 0
		select {
		case <-b.done:
			return errEnded
		default:
		}
		if time.Now().After(b.deadline) {
			return errLate
		}
	}
	return nil
}

// make takes the bytes of a value, before it is made if they are known.
func (b *budget) make(bytes int64) error {
	if bytes < 0 || bytes > maxPerCall {
		return fmt.Errorf("the call makes more than %s: make it smaller", limit.Size(maxPerCall))
	}
	if b.made -= bytes; b.made < 0 {
		return errMade
	}
	return b.step(1 + bytes/64)
}

// write takes the bytes of the output of a file.
func (b *budget) write(bytes int) error {
	if b.output -= int64(bytes); b.output < 0 {
		return fmt.Errorf("the chart writes more than %s; make it smaller, or raise limits.buildOutput", limit.Size(b.limits.BuildOutput))
	}
	return nil
}

// read takes the steps to read all of a value, and returns its size. It refuses one that is too deep, too large or contains itself.
func (b *budget) read(v any) (size int64, err error) {
	switch v := v.(type) {
	case nil, bool, int, int64, float64:
		return 8, nil
	case string:
		return int64(len(v)), b.step(int64(len(v) / 64))
	}
	err = b.readValue(reflect.ValueOf(v), 0, &size)
	return size, err
}

// readValue reads a part of a value. A part that is there several times counts each time, as it is written each time.
func (b *budget) readValue(v reflect.Value, depth int, size *int64) error {
	if depth > deepestValue {
		return errCycle
	}
	bytes := int64(64)
	if v.Kind() == reflect.String || v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		bytes = 16 + int64(v.Len())
	}
	if *size += bytes; *size > maxPerCall {
		return errSize
	}
	if err := b.step(1 + bytes/64); err != nil {
		return err
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			return b.readValue(v.Elem(), depth+1, size)
		}
	case reflect.Map:
		for i := v.MapRange(); i.Next(); {
			if err := b.readValue(i.Value(), depth+1, size); err != nil {
				return err
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if v.Type().Elem().Kind() == reflect.Uint8 {
				break
			}
			if err := b.readValue(v.Index(i), depth+1, size); err != nil {
				return err
			}
		}
	}
	return nil
}

// A writer is the output of one template.
type writer struct {
	*budget
	text []byte
	// file says that it is the output of a file and not a value.
	file bool
}

func (w *writer) Write(p []byte) (int, error) {
	take := func() error { return w.make(int64(len(p))) }
	if w.file {
		take = func() error { return w.write(len(p)) }
	}
	if err := take(); err != nil {
		return 0, err
	}
	w.text = append(w.text, p...)
	return len(p), nil
}
