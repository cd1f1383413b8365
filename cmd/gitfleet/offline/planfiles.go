package offline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
)

// readFleet reads the observed fleet.
func readFleet(file string) (*forecast.Fleet, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--clusters: %w", err)
	}
	clusters, err := hub.ReadClusters(file, data)
	if err != nil {
		return nil, fmt.Errorf("--clusters:\n%w", err)
	}
	return forecast.NewFleet(clusters, time.Now()), nil
}

// readCurrent reads the content of clusters from an earlier plan.
func readCurrent(file string) (*forecast.Document, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--current: %w", err)
	}
	d := &forecast.Document{}
	if err := json.Unmarshal(data, d); err != nil {
		return nil, fmt.Errorf("--current: %s: %w", whereJSON(file, data, err), describeJSONError(err))
	}
	if err := d.Validate(); err != nil {
		return nil, fmt.Errorf("--current: %s: %w; give what gitfleet plan -o json has written", file, err)
	}
	return d, nil
}

// whereJSON returns the file, with the line of an error if it is known.
func whereJSON(file string, data []byte, err error) string {
	offset := int64(0)
	var syntax *json.SyntaxError
	var shape *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &shape):
		offset = shape.Offset
	}
	if offset == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, 1+bytes.Count(data[:min(int(offset), len(data))], []byte("\n")))
}

// describeJSONError describes an error without the terms of Go.
func describeJSONError(err error) error {
	var shape *json.UnmarshalTypeError
	if errors.As(err, &shape) {
		return fmt.Errorf("%s: must be of type %s, not %s", shape.Field, shape.Type, shape.Value)
	}
	return fmt.Errorf("not valid JSON: %w", err)
}
