// Spends its time in two functions as 2:1, and some more below Array.prototype.sort. Ends at SIGTERM, so that
// --cpu-prof writes what it saw.

// V8 makes a function part of its caller where it knows the callee of a call. Calls through this table have met two
// callees each, so that every function keeps a frame of its own, in V8's profiles as on the stack.
const called = Array(6).fill(n => n)

function spin(n) {
  let x = 88172645
  for (let i = 0; i < n; i++) {
    x ^= x << 13
    x ^= x >>> 17
    x ^= x << 5
  }
  return x
}

function leafA(n) {
  return called[0](n) + 1
}

function leafB(n) {
  return called[0](n) + 2
}

class Worker {
  doA(n) {
    return called[1](n) + 1
  }

  doB(n) {
    return called[2](n) + 2
  }
}

let sum = 0

function work() {
  sum ^= called[3](600000)
  sum ^= called[4](300000)
  for (const numbers of [[3, 1, 2]])
    numbers.sort((a, b) => {
      sum ^= called[2](30000)
      return a - b
    })
}

for (let i = 0; i < 5000; i++) {
  for (const each of [leafA, leafB, Worker.prototype.doA, Worker.prototype.doB, work]) each(1)
}
called.splice(0, 6, spin, leafA, leafB, Worker.prototype.doA, Worker.prototype.doB, work)

// Two that take turns, so that Node.js does not know whom it calls either.
function turn() {
  called[5]()
  setImmediate(turnAgain)
}

function turnAgain() {
  called[5]()
  setImmediate(turn)
}

process.on('SIGTERM', () => {
  console.log(sum)
  process.exit()
})
setImmediate(() => setImmediate(turn))
