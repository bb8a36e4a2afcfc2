/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What PyTorch has above a tensor's memory, in small: the storage that has its
 * address, the tensor that has the storage, and the node of a graph that keeps
 * a tensor for the way back. And beside it, of another framework, a pool. Each
 * has a class, and its address is all that Python has of it.
 *
 * Invariant: nothing here has the address of memory but a storage, twice, as
 * PyTorch's has: the data, and what is to be freed.
 */
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

namespace c10
{

struct StorageImpl {
    explicit StorageImpl(uint64_t data) : data(data), context(data)
    {
    }
    virtual ~StorageImpl() = default;
    uint64_t data, context;
};

} // namespace c10

namespace torch::autograd
{

struct Node {
    virtual ~Node() = default;
};

} // namespace torch::autograd

namespace c10
{

struct TensorImpl {
    virtual ~TensorImpl() = default;
    std::unique_ptr<StorageImpl> storage;
    std::shared_ptr<torch::autograd::Node> made_by;
};

} // namespace c10

namespace torch::autograd::generated
{

struct MulBackward0 : Node {
    std::shared_ptr<c10::TensorImpl> saved;
};

} // namespace torch::autograd::generated

namespace tsl
{

/* XLA's, which knows of all that it took from the driver. */
struct BFCAllocator {
    virtual ~BFCAllocator() = default;
    std::vector<uint64_t> chunks;
};

} // namespace tsl

static std::unique_ptr<tsl::BFCAllocator> pool;

static c10::TensorImpl *tensor_of(uint64_t data)
{
    auto *tensor = new c10::TensorImpl;

    tensor->storage = std::make_unique<c10::StorageImpl>(data);
    return tensor;
}

extern "C" {

/* A tensor whose memory @data is. */
void *fake_tensor(uint64_t data)
{
    return tensor_of(data);
}

void fake_pool_add(uint64_t data)
{
    if (!pool) {
        pool = std::make_unique<tsl::BFCAllocator>();
    }
    pool->chunks.push_back(data);
}

/* What has another use now, and still has words of before: to where the pool
 * has put its table since. As an object with a class, or as raw memory. */
void *fake_left_over(int with_class)
{
    auto at = reinterpret_cast<uint64_t>(pool->chunks.data());

    if (with_class) {
        return tensor_of(at);
    }
    auto *block = static_cast<uint64_t *>(calloc(8, sizeof(uint64_t)));
    if (block != nullptr) {
        block[4] = at;
    }
    return block;
}

/* One without memory, which was made from the tensor of @data. */
void *fake_loss(uint64_t data)
{
    std::shared_ptr<torch::autograd::generated::MulBackward0> node(
        new torch::autograd::generated::MulBackward0);
    auto *loss = new c10::TensorImpl;

    node->saved.reset(tensor_of(data));
    loss->made_by = node;
    return loss;
}
}
