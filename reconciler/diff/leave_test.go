package diff

import (
	"reflect"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
)

func TestLeaveSendsNoFieldThatSomeoneElseOwns(t *testing.T) {
	const image = "/spec/template/spec/containers/0/image"
	tests := map[string]struct {
		pointer string
		do      func(*server)
		field   []string
		want    any // nil if it is not sent
	}{
		"an autoscaler owns it": {"/spec/replicas", func(s *server) { s.scale("hpa", 7) }, []string{"spec", "replicas"}, nil},
		"nobody else owns it":   {"/spec/replicas", func(s *server) {}, []string{"spec", "replicas"}, int64(3)},
		"we own it with another value than the new one": {"/spec/replicas", func(s *server) {
			s.apply(api.FieldManager, strings.Replace(web, "replicas: 3", "replicas: 5", 1))
		}, []string{"spec", "replicas"}, int64(5)},
		"someone removed it": {"/spec/replicas", func(s *server) {
			s.update("kubectl-edit", "", func(o map[string]any) { delete(o["spec"].(map[string]any), "replicas") })
		}, []string{"spec", "replicas"}, nil},
		"someone owns a part of it": {"/metadata/labels", func(s *server) {
			s.update("kubectl-label", "", func(o map[string]any) { set(s.t, o, "x", "metadata", "labels", "mine") })
		}, []string{"metadata", "labels"}, map[string]any{"tier": "front"}},
		"someone owns a part of a list": {"/spec/template/spec/containers", func(s *server) {
			s.update("kubectl-edit", "", func(o map[string]any) {
				container(o)["image"] = "nginx:evil"
				variable(o)["value"] = "slow"
				prepend(pod(o), "containers", map[string]any{"name": "proxy", "image": "envoy"})
			})
		}, []string{"image"}, nil},
		"someone owns all of it": {"/metadata/labels", func(s *server) {
			s.update("kubectl-label", "", func(o map[string]any) { set(s.t, o, "x", "metadata", "labels", "tier") })
		}, []string{"metadata", "labels"}, nil},
		"the hub does not set it": {"/spec/paused", func(s *server) {
			s.update("kubectl-edit", "", func(o map[string]any) { set(s.t, o, true, "spec", "paused") })
		}, []string{"spec", "paused"}, nil},
		"below a field the hub does not set": {"/spec/strategy/type/x", func(s *server) {}, []string{"spec", "paused"}, nil},
		"in an item that has moved": {image, func(s *server) {
			s.update("kubectl-edit", "", func(o map[string]any) {
				container(o)["image"] = "nginx:evil"
				prepend(pod(o), "containers", map[string]any{"name": "proxy", "image": "envoy"})
			})
		}, []string{"image"}, nil},
		"an item": {"/spec/template/spec/containers/0", func(s *server) {}, []string{"image"}, "nginx:1.27"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, web)
			test.do(s)
			desired := object(t, web)
			before, live := desired.DeepCopy(), s.live.DeepCopy()
			sent := Leave(desired, s.live, []string{test.pointer}, api.FieldManager)
			var got any = sent.Object
			if len(test.field) == 1 {
				got = container(sent.Object)
			}
			for _, key := range test.field {
				got = field(got, key)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("sends %v, want %v", got, test.want)
			}
			if !reflect.DeepEqual(desired, before) || !reflect.DeepEqual(s.live, live) {
				t.Error("an argument was changed")
			}

			// an apply of the result must not change the live values
			for _, d := range Compare(s.dryRunOf(api.FieldManager, sent), s.live, Options{}) {
				if strings.HasPrefix(d.Path+"/", test.pointer+"/") {
					t.Errorf("applying it would change what is to be left alone: %v", d)
				}
			}
		})
	}
}

func TestLeaveCreatesWithTheValueOfTheHub(t *testing.T) {
	desired := object(t, web)
	if got := Leave(desired, nil, []string{"/spec/replicas"}, api.FieldManager); !reflect.DeepEqual(got, object(t, web)) {
		t.Errorf("creates %v", got.Object)
	}
}

func TestNormalizeStoresASecretAsAServerDoes(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"text":                   {"stringData: {a: x}", "data: {a: eA==}"},
		"text wins over data":    {"stringData: {a: x}\ndata: {a: eQ==, b: eQ==}", "data: {a: eA==, b: eQ==}"},
		"empty text":             {"stringData: {a: '', b: null}", "data: {a: '', b: ''}"},
		"broken lines":           {"data: {a: \"eHh4\\neHh4\\n\"}", "data: {a: eHh4eHh4}"},
		"as it should be":        {"data: {a: eA==}", "data: {a: eA==}"},
		"nothing":                {"", ""},
		"no data":                {"data: {}", "data: {}"},
		"not base64":             {"data: {a: '%'}", "data: {a: '%'}"},
		"not text":               {"data: {a: eA==}\nstringData: {a: 1}", "data: {a: eA==}\nstringData: {a: 1}"},
		"not even a map":         {"stringData: [a]", "stringData: [a]"},
		"no text, but it is set": {"data: {a: eA==}\nstringData: {}", "data: {a: eA==}\nstringData: {}"},
	}
	const head = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"
	for name, test := range tests {
		in := object(t, head+test.in)
		before := in.DeepCopy()
		if got, want := Normalize(in), object(t, head+test.want); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got.Object, want.Object)
		}
		if !reflect.DeepEqual(in, before) {
			t.Errorf("%s: the argument was changed", name)
		}
	}
	other := object(t, "{apiVersion: v1, kind: ConfigMap, data: {a: x}, stringData: {b: y}}")
	if got := Normalize(other); got != other {
		t.Errorf("another kind became %v", got.Object)
	}
}
