package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A queryResult is Prometheus's answer to an instant query.
type queryResult struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	// Warnings say that the result may be incomplete, for instance because a store of Thanos does not answer.
	Warnings []string `json:"warnings"`
	Data     struct {
		Type   string          `json:"resultType"`
		Result json.RawMessage `json:"result"`
	} `json:"data"`
}

// A series is one element of a vector.
type series struct {
	Metric map[string]string `json:"metric"`
	Value  sample            `json:"value"`
}

// A sample is a time and a number.
type sample float64

// UnmarshalJSON implements json.Unmarshaler.
func (s *sample) UnmarshalJSON(raw []byte) error {
	var pair []json.RawMessage
	var text string
	if err := json.Unmarshal(raw, &pair); err != nil || len(pair) != 2 || json.Unmarshal(pair[1], &text) != nil {
		return errors.New("a value is not a pair of a time and a number")
	}
	n, err := strconv.ParseFloat(text, 64)
	*s = sample(n)
	return err
}

// queryPrometheus asks once, and compares every value of the result with the condition.
func (a *Asker) queryPrometheus(ctx context.Context, g *api.PrometheusGate) (good bool, text string, err error) {
	condition, err := api.ParseThreshold(g.Condition)
	if err != nil {
		return false, "", err
	}
	resp, err := a.get(ctx, strings.TrimSuffix(g.Address, "/")+"/api/v1/query", url.Values{"query": {g.Query}, "timeout": {requestTimeout.String()}})
	if err != nil {
		return false, "", err
	}
	var result queryResult
	err = json.Unmarshal(resp.body, &result)
	switch {
	case err == nil && result.Status == "error":
		return false, "", fmt.Errorf("the query fails: %s", resp.credentials.Mask(result.Error))
	case resp.status != http.StatusOK:
		return false, "", resp.refusal(g.Address)
	case err != nil || result.Status != "success":
		return false, "", fmt.Errorf("%s does not answer like Prometheus", g.Address)
	case len(result.Warnings) > 0:
		return false, "", fmt.Errorf("the result may be incomplete: %s", resp.credentials.Mask(result.Warnings[0]))
	}
	values, err := result.values()
	if err != nil {
		return false, "", resp.credentials.Error(err)
	}
	return judge(values, condition, g.Condition, resp.credentials.Mask)
}

// values are the elements of the result.
func (r *queryResult) values() (out []series, err error) {
	switch r.Data.Type {
	case "vector":
		err = json.Unmarshal(r.Data.Result, &out)
	case "scalar":
		out = make([]series, 1)
		err = json.Unmarshal(r.Data.Result, &out[0].Value)
	default:
		return nil, fmt.Errorf("the result is a %q; write a query whose result is a scalar or a vector", r.Data.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("the result is not that of a query: %w", err)
	}
	return out, nil
}

// judge says whether all values satisfy a condition. Without values, and if one is not a number, nothing can be said.
func judge(values []series, condition api.Threshold, text string, masked func(string) string) (bool, string, error) {
	slices.SortFunc(values, func(a, b series) int { return strings.Compare(a.labels(), b.labels()) })
	for _, v := range values {
		if n := float64(v.Value); !math.IsNaN(n) && !condition.Holds(n) {
			return false, fmt.Sprintf("the value%s is %s, which is not %s", masked(v.labels()), number(n), text), nil
		}
	}
	for _, v := range values {
		if math.IsNaN(float64(v.Value)) {
			return false, "", fmt.Errorf("the value%s is not a number (NaN)", masked(v.labels()))
		}
	}
	switch len(values) {
	case 0:
		return false, "", errors.New("the result of the query is empty")
	case 1:
		return true, fmt.Sprintf("the value is %s, which is %s", number(float64(values[0].Value)), text), nil
	}
	return true, fmt.Sprintf("all %d values are %s", len(values), text), nil
}

func number(n float64) string { return strconv.FormatFloat(n, 'g', 6, 64) }

// labels identify an element, if it has any.
func (s *series) labels() string {
	var out []string
	for name, value := range s.Metric {
		out = append(out, fmt.Sprintf("%s=%q", name, value))
	}
	if len(out) == 0 {
		return ""
	}
	slices.Sort(out)
	return " of {" + strings.Join(out, ", ") + "}"
}
