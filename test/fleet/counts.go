package fleet

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
)

// A Key describes a request. Verb is as the API server counts it: GET, LIST, WATCH, POST, PUT,
// PATCH, APPLY (a server-side apply), DELETE, DELETECOLLECTION. The core group is empty.
type Key struct {
	Verb, Group, Resource, Subresource string
}

// Counts are the numbers of requests that a cluster has served, including those of a daemon in
// another process, of controllers, of the API server to itself, and the request for the counts.
// A watch counts when it ends.
type Counts map[Key]int

var (
	requestTotal = regexp.MustCompile(`^apiserver_request_total\{(.*)\} (\S+)$`)
	label        = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
)

// Requests returns the numbers of requests that a cluster has served. They are counted a moment
// after the response, so compare two calls, or wait for the expected count.
func (m Member) Requests(ctx context.Context) (Counts, error) {
	client, err := rest.HTTPClientFor(m.Config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.Config.Host+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", m.Name, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics of %s: %s", m.Name, response.Status)
	}
	counts := Counts{}
	for scanner := bufio.NewScanner(response.Body); ; {
		if !scanner.Scan() {
			return counts, scanner.Err()
		}
		if err := counts.add(scanner.Text()); err != nil {
			return nil, fmt.Errorf("metrics of %s: %w", m.Name, err)
		}
	}
}

// add adds a line of the text format, if it counts requests.
func (c Counts) add(line string) error {
	found := requestTotal.FindStringSubmatch(line)
	if found == nil {
		return nil
	}
	value, err := strconv.ParseFloat(found[2], 64)
	if err != nil {
		return fmt.Errorf("%s: %w", line, err)
	}
	labels := map[string]string{}
	for _, pair := range label.FindAllStringSubmatch(found[1], -1) {
		labels[pair[1]] = pair[2]
	}
	c[Key{labels["verb"], labels["group"], labels["resource"], labels["subresource"]}] += int(value)
	return nil
}

// Since returns the requests since before.
func (c Counts) Since(before Counts) Counts {
	since := Counts{}
	for key, n := range c {
		if n != before[key] {
			since[key] = n - before[key]
		}
	}
	return since
}

// Of sums the requests that match the non-empty fields of like: Of(Key{}) is all, Of(Key{Verb:
// "APPLY"}) all applies.
func (c Counts) Of(like Key) int {
	matches := func(want, got string) bool { return want == "" || want == got }
	sum := 0
	for key, n := range c {
		if matches(like.Verb, key.Verb) && matches(like.Group, key.Group) &&
			matches(like.Resource, key.Resource) && matches(like.Subresource, key.Subresource) {
			sum += n
		}
	}
	return sum
}

// String has a line per key, sorted.
func (c Counts) String() string {
	var text []string
	for key, n := range c {
		what := strings.Trim(key.Group+"/"+key.Resource+"/"+key.Subresource, "/")
		text = append(text, fmt.Sprintf("%s %s %d", key.Verb, what, n))
	}
	slices.Sort(text)
	return strings.Join(text, "\n")
}
