/** Finds recursive functions, the only ones that count the stack. */
/** Nodes on a cycle, by an iterative form of Tarjan's strongly connected components. */
export function recursiveNodes(edges: readonly (readonly number[])[]): Uint8Array {
  const count = edges.length
  const order = new Int32Array(count).fill(-1)
  const low = new Int32Array(count)
  const isOpen = new Uint8Array(count)
  const recursive = new Uint8Array(count)
  const open: number[] = []
  const path: { node: number; next: number }[] = []
  let time = 0
  const enter = (node: number) => {
    order[node] = low[node] = time++
    open.push(node)
    isOpen[node] = 1
    path.push({ node, next: 0 })
  }
  for (let root = 0; root < count; root++) {
    if (order[root] >= 0) continue
    enter(root)
    while (path.length > 0) {
      const frame = path[path.length - 1]
      const { node } = frame
      if (frame.next < edges[node].length) {
        const callee = edges[node][frame.next++]
        if (callee === node) recursive[node] = 1
        if (callee >= count) continue
        if (order[callee] < 0) enter(callee)
        else if (isOpen[callee] === 1) low[node] = Math.min(low[node], order[callee])
        continue
      }
      path.pop()
      if (path.length > 0) {
        const caller = path[path.length - 1].node
        low[caller] = Math.min(low[caller], low[node])
      }
      if (low[node] === order[node]) closeComponent(node, open, isOpen, recursive)
    }
  }
  return recursive
}

function closeComponent(root: number, open: number[], isOpen: Uint8Array, recursive: Uint8Array): void {
  const first = open.lastIndexOf(root)
  const members = open.splice(first)
  for (const member of members) {
    isOpen[member] = 0
    if (members.length > 1) recursive[member] = 1
  }
}
