package golden

import "strings"

// LineDiff lists the removed and added lines, by the longest common subsequence of lines.
func LineDiff(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	longest := make([][]int, len(x)+1)
	for i := range longest {
		longest[i] = make([]int, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if longest[i][j] = max(longest[i+1][j], longest[i][j+1]); x[i] == y[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			}
		}
	}
	var out []string
	for i, j := 0, 0; i < len(x) || j < len(y); {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && longest[i+1][j] >= longest[i][j+1]:
			out, i = append(out, "-"+x[i]), i+1
		default:
			out, j = append(out, "+"+y[j]), j+1
		}
	}
	return strings.Join(out, "\n")
}
