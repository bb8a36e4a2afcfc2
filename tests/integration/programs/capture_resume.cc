// SPDX-License-Identifier: LGPL-2.1-or-later
// C++20 coroutines: bodies that go on in another caller's stack, awaited from
// each other, and left by exceptions.
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <utility>

#define FRAME __attribute__((noinline, noclone))

namespace
{

FRAME void touch(size_t bytes)
{
    void *volatile block = std::malloc(bytes);

    std::free(block);
}

class Task
{
  public:
    struct promise_type {
        int value = 0;
        std::exception_ptr error;
        std::coroutine_handle<> waiting = std::noop_coroutine();

        Task get_return_object()
        {
            return Task(
                std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() noexcept
        {
            return {};
        }
        struct Last {
            bool await_ready() noexcept
            {
                return false;
            }
            std::coroutine_handle<>
            await_suspend(std::coroutine_handle<promise_type> self) noexcept
            {
                return self.promise().waiting;
            }
            void await_resume() noexcept
            {
            }
        };
        Last final_suspend() noexcept
        {
            return {};
        }
        std::suspend_always yield_value(int next)
        {
            touch(24);
            value = next;
            return {};
        }
        void return_value(int last)
        {
            value = last;
        }
        void unhandled_exception()
        {
            error = std::current_exception();
        }
    };

    explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle)
    {
    }
    Task(Task &&other) noexcept : handle_(std::exchange(other.handle_, nullptr))
    {
    }
    Task(const Task &) = delete;
    Task &operator=(const Task &) = delete;
    Task &operator=(Task &&) = delete;
    ~Task()
    {
        if (handle_) {
            handle_.destroy();
        }
    }

    bool await_ready() noexcept
    {
        return false;
    }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiting)
    {
        handle_.promise().waiting = waiting;
        return handle_;
    }
    int await_resume()
    {
        if (handle_.promise().error) {
            std::rethrow_exception(handle_.promise().error);
        }
        return handle_.promise().value;
    }
    FRAME bool go_on()
    {
        handle_.resume();
        return !handle_.done();
    }
    int value() const
    {
        return handle_.promise().value;
    }

  private:
    std::coroutine_handle<promise_type> handle_;
};

Task inner(int depth)
{
    touch(32);
    if (depth == 0) {
        throw std::runtime_error("inner");
    }
    if (depth == 1) {
        co_return 1;
    }
    int sum = 0;
    try {
        sum = co_await inner(depth - 2);
    } catch (const std::exception &) {
        touch(40);
    }
    co_return sum + co_await inner(depth % 2 == 0 ? depth / 2 : 1);
}

Task numbers(int count)
{
    for (int i = 0; i < count; i++) {
        co_yield i;
        int sum = 0;
        try {
            sum = co_await inner(i % 12);
        } catch (const std::exception &) {
            sum = -1;
        }
        touch(static_cast<size_t>(sum + 50));
    }
    co_return -1;
}

/* Each step of a coroutine comes from another depth of the stack. */
FRAME bool go_on_from(Task &task, int depth)
{
    volatile char room[40];
    bool more;

    room[depth % 40] = 1;
    if (depth > 0) {
        more = go_on_from(task, depth - room[depth % 40]);
    } else {
        more = task.go_on();
    }
    touch(16);
    return more;
}

} // namespace

int main()
{
    Task first = numbers(300);
    Task second = numbers(300);
    long sum = 0;

    for (int i = 0; go_on_from(first, i % 9) && go_on_from(second, i % 13);
         i++) {
        sum += first.value() + second.value();
    }
    std::printf("%ld\n", sum);
    return 0;
}
