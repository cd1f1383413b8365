package picture

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// A Source is a Prometheus whose data is drawn.
type Source struct{ api prometheus.API }

// NewSource returns the Prometheus at a URL. It makes no request.
func NewSource(url string) (*Source, error) {
	client, err := api.NewClient(api.Config{Address: url})
	if err != nil {
		return nil, err
	}
	return &Source{prometheus.NewAPI(client)}, nil
}

// Query returns a query for Draw. Variables are the values of the variables of a dashboard, such
// as placement; that of $__rate_interval is 10 s.
func (s *Source) Query(ctx context.Context, from, to time.Time, variables map[string]string) Query {
	replacements := []string{"$__rate_interval", "10s"}
	for name, value := range variables {
		replacements = append(replacements, "$"+name, value)
	}
	set := strings.NewReplacer(replacements...)
	return func(expr string, instant bool) ([]Series, error) {
		period := prometheus.Range{Start: from, End: to, Step: max(250*time.Millisecond, to.Sub(from)/300)}
		if instant {
			period.Start = to
		}
		value, _, _, err := s.api.QueryRange(ctx, set.Replace(expr), period)
		if err != nil {
			return nil, err
		}
		matrix, ok := value.(model.Matrix)
		if !ok {
			return nil, fmt.Errorf("%s: a %s is no range of values", expr, value.Type())
		}
		var all []Series
		for _, stream := range matrix {
			one := Series{Labels: labels(stream.Metric)}
			for _, p := range stream.Values {
				one.Points = append(one.Points, Point{At: p.Timestamp.Time(), Value: float64(p.Value)})
			}
			all = append(all, one)
		}
		return all, nil
	}
}

// Now evaluates an expression now. Each series has one point.
func (s *Source) Now(ctx context.Context, expr string) ([]Series, error) {
	value, _, _, err := s.api.Query(ctx, expr, time.Time{})
	if err != nil {
		return nil, err
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("%s: a %s is no vector", expr, value.Type())
	}
	var all []Series
	for _, sample := range vector {
		all = append(all, Series{labels(sample.Metric), []Point{{sample.Timestamp.Time(), float64(sample.Value)}}})
	}
	return all, nil
}

func labels(metric model.Metric) map[string]string {
	out := map[string]string{}
	for name, value := range metric {
		out[string(name)] = string(value)
	}
	return out
}

// Values returns the values of a label of a metric since a time, sorted.
func (s *Source) Values(ctx context.Context, metric, label string, since time.Time) ([]string, error) {
	values, _, _, err := s.api.LabelValues(ctx, label, []string{metric}, since, time.Now())
	if err != nil {
		return nil, err
	}
	var out []string
	for _, v := range values {
		out = append(out, string(v))
	}
	return out, nil
}
