package main

import (
	"strings"
	"testing"
)

func TestTally(t *testing.T) {
	tests := map[string]struct {
		events []string
		want   string
	}{
		"passed tests are counted and not printed": {
			[]string{
				`{"Action":"output","Package":"a","Test":"TestX","Output":"=== RUN TestX\n"}`,
				`{"Action":"pass","Package":"a","Test":"TestX/one"}`,
				`{"Action":"pass","Package":"a","Test":"TestX","Elapsed":1}`,
				`{"Action":"output","Package":"a","Output":"PASS\n"}`,
				`{"Action":"pass","Package":"a","Elapsed":1.25}`,
			},
			"ok    a  1.2s\n2 passed, 0 failed, 0 skipped\n",
		},
		"a failed test is printed with its output, and its start again at the end": {
			[]string{
				`{"Action":"output","Package":"a","Test":"TestX","Output":"    x.go:1: no\n"}`,
				`{"Action":"output","Package":"a","Test":"TestY","Output":"    y.go:1: fine\n"}`,
				`{"Action":"pass","Package":"a","Test":"TestY"}`,
				`{"Action":"fail","Package":"a","Test":"TestX"}`,
				`{"Action":"output","Package":"a","Output":"FAIL\n"}`,
				`{"Action":"fail","Package":"a","Elapsed":0.5}`,
			},
			"FAIL  a TestX\n    x.go:1: no\nFAIL  a  0.5s\nFAIL\nFAIL  a TestX: x.go:1: no\n1 passed, 1 failed, 0 skipped\n",
		},
		"a package that does not build counts as one": {
			[]string{
				`{"Action":"build-output","ImportPath":"a","Output":"a.go:1: undefined: x\n"}`,
				`{"Action":"build-fail","ImportPath":"a"}`,
				`{"Action":"output","Package":"a","Output":"FAIL\ta [build failed]\n"}`,
				`{"Action":"fail","Package":"a","Elapsed":0,"FailedBuild":"a"}`,
			},
			"a.go:1: undefined: x\nFAIL  a  0.0s\nFAIL\ta [build failed]\nFAIL  a: FAIL\ta [build failed]\n0 passed, 1 failed, 0 skipped\n",
		},
		"a skipped test says why": {
			[]string{
				`{"Action":"output","Package":"a","Test":"TestX","Output":"=== RUN   TestX\n"}`,
				`{"Action":"output","Package":"a","Test":"TestX","Output":"    x.go:1: needs sshd\n"}`,
				`{"Action":"output","Package":"a","Test":"TestX","Output":"--- SKIP: TestX (0.00s)\n"}`,
				`{"Action":"skip","Package":"a","Test":"TestX"}`,
				`{"Action":"pass","Package":"a","Elapsed":0}`,
				`{"Action":"skip","Package":"no tests here","Elapsed":0}`,
			},
			"ok    a  0.0s\nskip  a TestX: x.go:1: needs sshd\n0 passed, 0 failed, 1 skipped\n",
		},
		"what is no event is passed on": {
			[]string{"go: downloading something"},
			"go: downloading something\n0 passed, 0 failed, 0 skipped\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			sum := newTally(&out)
			if err := sum.read(strings.NewReader(strings.Join(test.events, "\n") + "\n")); err != nil {
				t.Fatal(err)
			}
			sum.sum()
			if out.String() != test.want {
				t.Errorf("got:\n%swant:\n%s", &out, test.want)
			}
		})
	}
}
