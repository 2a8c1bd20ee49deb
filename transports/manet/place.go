package manet

import "slices"

// Regions tells which L-regions each path is in: the regions of all nodes that hear one
// of its nodes at the basic rate, and of its own nodes. hears[a] lists the nodes that
// hear node a; paths[i] lists the nodes of association i, source and destination with
// them. Nodes are numbered from 0 and name their regions. Nodes that hears does not have
// hear nobody. Each list of regions is sorted and without repetition.
func Regions(hears [][]int, paths [][]int) [][]RegionID {
	out := make([][]RegionID, len(paths))
	for i, path := range paths {
		var in []RegionID
		for _, node := range path {
			in = append(in, RegionID(node)) //nolint:gosec // a node's number is small
			if node >= len(hears) {
				continue
			}
			for _, other := range hears[node] {
				in = append(in, RegionID(other)) //nolint:gosec // as above
			}
		}
		slices.Sort(in)
		out[i] = slices.Compact(in)
	}
	return out
}
